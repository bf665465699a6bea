// The frame of the page: header, connection, the view, footer.
import { useSignalEffect } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import { type Catalogue, get, loginNeeded } from './api';
import { Calculator } from './calculator/calculator';
import { toHash } from './calculator/permalink';
import { program, restoreProgram } from './calculator/state';
import { ops, setCatalogue } from './catalogue';
import { connect, disconnect, link, reconnects } from './connection';
import { ConnectionBanner } from './connection_banner';
import { Announcer } from './parts/announcer';
import { Logo, Moon, Sun, SunMoon } from './parts/icons';
import { LazyView } from './parts/lazy_view';
import { go, view } from './route';
import { Login } from './session/login';
import { ReportDialog } from './session/report_dialog';
import { ResetDialog } from './session/reset_dialog';
import { loadSession, logout, session } from './session/session';
import { SessionWarning } from './session/session_warning';
import { nextTheme, theme } from './theme';

interface Machine {
  machine_type: string;
  device_id: string;
  cores: number;
  system: string;
  version: string;
}
interface Build {
  success: boolean;
  short_hash: string;
  full_hash: string;
  time_ago: string;
  message: string;
  version: string;
}

async function load(setMachine: (machine: Machine) => void, setBuild: (build: Build) => void) {
  const now = await loadSession();
  if (now.required && !now.authenticated) {
    loginNeeded.value = true;
    return;
  }
  loginNeeded.value = false;
  connect();
  const first = ops.value.length === 0;
  setCatalogue((await get<Catalogue>('/api/catalogue')).operations);
  if (first) restoreProgram();
  setMachine(await get<Machine>('/api/machine/info'));
  setBuild(await get<Build>('/api/git/info'));
}

export function App() {
  const [machine, setMachine] = useState<Machine | undefined>(undefined);
  const [build, setBuild] = useState<Build | undefined>(undefined);
  const [dialog, setDialog] = useState<'reset' | 'report' | undefined>(undefined);
  const reload = () =>
    load(setMachine, setBuild).catch(() => {
      // The server is not reachable yet; the connection retries and then loads again.
      if (!loginNeeded.value) connect();
    });
  useEffect(() => void reload(), []);
  useSignalEffect(() => {
    if (reconnects.value > 0) void reload();
  });
  useSignalEffect(() => {
    if (loginNeeded.value) disconnect();
  });
  useSignalEffect(() => {
    document.title = view.value === 'devices' ? 'Devices – Tenon' : view.value === 'models' ? 'Models – Tenon' : 'Tenon';
  });
  const open = !loginNeeded.value;
  const home = ops.value.length > 0 ? `/${toHash(program.value)}` : '/';
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => (event.preventDefault(), document.getElementById('main')?.focus())}>
        Skip to the content
      </a>
      <header class="top">
        <div class="top-row">
          <a class="brand" href={home} onClick={(event) => go(home, event)}>
            <Logo /> Tenon
          </a>
          {open && (
            <nav class="tabs" aria-label="Views">
              <a href={home} aria-current={view.value === 'calculator' ? 'page' : undefined} onClick={(event) => go(home, event)}>
                Calculator
              </a>
              <a href="/models" aria-current={view.value === 'models' ? 'page' : undefined} onClick={(event) => go('/models', event)}>
                Models
              </a>
              <a href="/devices" aria-current={view.value === 'devices' ? 'page' : undefined} onClick={(event) => go('/devices', event)}>
                Devices
              </a>
            </nav>
          )}
          <div class="top-actions">
            {open && machine && (
              <span class="machine small soft" id="machine-type" title={`${machine.system}, ${machine.cores} cores`}>
                {machine.machine_type}
              </span>
            )}
            {open && (
              <button type="button" class="plain" onClick={() => setDialog('reset')}>
                Reset a device
              </button>
            )}
            <ThemeButton />
            {open && session.value?.required && (
              <button type="button" class="plain" onClick={() => void logout()}>
                Log out
              </button>
            )}
          </div>
        </div>
      </header>
      <ConnectionBanner />
      <main id="main" tabIndex={-1}>
        {open ? <View /> : <Login onDone={reload} />}
      </main>
      <footer class="foot">
        <div class="foot-row">
          {build && <Commit build={build} />}
          {open && (
            <span class="row end">
              <a class="button plain small" href="/openapi.json">
                API (OpenAPI)
              </a>
              <button type="button" class="plain small" onClick={() => setDialog('report')}>
                Report a problem
              </button>
            </span>
          )}
        </div>
      </footer>
      {dialog === 'reset' && <ResetDialog onClose={() => setDialog(undefined)} />}
      {dialog === 'report' && <ReportDialog onClose={() => setDialog(undefined)} />}
      <SessionWarning />
      <Announcer />
    </>
  );
}

const loadDevices = () => import('./devices/devices').then((module) => module.Devices);
const loadModels = () => import('./models/models').then((module) => module.Models);

function View() {
  if (view.value === 'devices') return <LazyView key="devices" load={loadDevices} />;
  if (view.value === 'models') return <LazyView key="models" load={loadModels} />;
  return link.value !== 'open' && ops.value.length === 0 ? <Gone /> : <Calculator />;
}

function ThemeButton() {
  const chosen = theme.value;
  return (
    <button type="button" class="plain" onClick={nextTheme} aria-label={`Theme: ${chosen}. Change it`} title={`Theme: ${chosen}`}>
      {chosen === 'light' ? <Sun /> : chosen === 'dark' ? <Moon /> : <SunMoon />}
    </button>
  );
}

const Commit = ({ build }: { build: Build }) => (
  <span class="commit break">
    Tenon {build.version}
    {build.success && (
      <>
        {' '}
        · <code title={build.message}>{build.short_hash}</code> · {build.time_ago}
      </>
    )}
  </span>
);

const Gone = () => (
  <p class="empty" role="status">
    {link.value === 'connecting' ? 'Loading …' : 'The server does not respond yet. This page continues automatically when it does.'}
  </p>
);
