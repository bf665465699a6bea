// A conversation with a language model. The answer appears as it is generated and can be stopped.
import { useRef, useState } from 'preact/hooks';
import { parseJson, type ProblemBody, send } from '../api';
import { deviceEvents } from '../connection';
import { problemFrom, ProblemNotice } from '../parts/problem';
import { DeviceWork } from './device_work';
import { events } from './events';

interface Message {
  role: 'user' | 'assistant';
  content: string;
}
interface Chunk {
  choices: { delta?: { content?: string }; text?: string; finish_reason: string | null }[];
  usage?: { prompt_tokens: number; completion_tokens: number };
  error?: { message: string };
}
interface Measured {
  prompt: number;
  tokens: number;
  firstSeconds: number;
  seconds: number;
}

const kEventsLagMs = 1000;

export function Chat({ model, chats }: { model: string; chats: boolean }) {
  const [messages, setMessages] = useState<Message[]>([]);
  const [draft, setDraft] = useState('');
  const [system, setSystem] = useState('');
  const [temperature, setTemperature] = useState(0.7);
  const [most, setMost] = useState(256);
  const [problem, setProblem] = useState<ProblemBody | undefined>(undefined);
  const [measured, setMeasured] = useState<Measured | undefined>(undefined);
  const running = useRef<AbortController | undefined>(undefined);
  const [busy, setBusy] = useState(false);
  // The ids of the events of the last answer: from the first on, up to the last once it has ended.
  const [span, setSpan] = useState<{ from: number; to?: number } | undefined>(undefined);

  const ask = async () => {
    const before: Message[] = [...messages, { role: 'user', content: draft }];
    setDraft('');
    setProblem(undefined);
    setMeasured(undefined);
    setBusy(true);
    const from = (deviceEvents.value.at(-1)?.id ?? 0) + 1;
    setSpan({ from });
    setMessages([...before, { role: 'assistant', content: '' }]);
    const abort = new AbortController();
    running.current = abort;
    const begin = performance.now();
    let answer = '';
    let first = 0;
    try {
      const sampling = { model, stream: true, stream_options: { include_usage: true }, temperature, max_tokens: most };
      const spoken = system.trim() === '' ? before : [{ role: 'system', content: system }, ...before];
      const body = chats ? { ...sampling, messages: spoken } : { ...sampling, prompt: before[before.length - 1].content };
      const response = await send(chats ? '/v1/chat/completions' : '/v1/completions', {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify(body),
        signal: abort.signal,
      });
      for await (const data of events(response)) {
        if (data === '[DONE]') break;
        const chunk = parseJson(data) as Chunk;
        if (chunk.error) throw new Error(chunk.error.message);
        const text = chunk.choices[0]?.delta?.content ?? chunk.choices[0]?.text ?? '';
        if (text !== '' && first === 0) first = performance.now();
        answer += text;
        setMessages([...before, { role: 'assistant', content: answer }]);
        if (chunk.usage) {
          const end = performance.now();
          setMeasured({ prompt: chunk.usage.prompt_tokens, tokens: chunk.usage.completion_tokens, firstSeconds: (first - begin) / 1000, seconds: (end - first) / 1000 });
        }
      }
    } catch (error) {
      if (!abort.signal.aborted) setProblem(problemFrom(error));
      if (answer === '') setMessages(before);
    }
    running.current = undefined;
    setBusy(false);
    // Events come a moment later than the answer.
    setTimeout(() => setSpan((now) => (now?.from === from ? { from, to: deviceEvents.value.at(-1)?.id ?? from } : now)), kEventsLagMs);
  };

  return (
    <section class="card stack" aria-labelledby="chat-title">
      <header class="row between">
        <h2 id="chat-title">{chats ? 'Chat' : 'Continue a text'}</h2>
        <button type="button" disabled={busy || messages.length === 0} onClick={() => (setMessages([]), setSpan(undefined), setMeasured(undefined))}>
          New conversation
        </button>
      </header>
      {messages.length > 0 && (
        <ol class="chat" aria-label="Conversation" aria-live="polite">
          {messages.map((message, i) => (
            <li key={i} class={message.role}>
              <span class="label">{message.role === 'user' ? 'You' : model}</span>
              <p class="break">{message.content === '' && busy ? '…' : message.content}</p>
            </li>
          ))}
        </ol>
      )}
      {problem && <ProblemNotice problem={problem} />}
      {span && <DeviceWork model={model} events={deviceEvents.value.filter(({ id }) => id >= span.from && (span.to === undefined || id <= span.to))} />}
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (!busy && draft.trim() !== '') void ask();
        }}
      >
        <div class="field">
          <label for="chat-draft">{chats ? 'Message' : 'Text'}</label>
          <textarea
            id="chat-draft"
            rows={3}
            value={draft}
            onInput={(event) => setDraft(event.currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
              event.preventDefault();
              event.currentTarget.form?.requestSubmit();
            }}
          />
        </div>
        <div class="row">
          {busy ? (
            <button type="button" onClick={() => running.current?.abort()}>
              Stop
            </button>
          ) : (
            <button type="submit" class="primary" disabled={draft.trim() === ''}>
              Send
            </button>
          )}
          {measured && (
            <span class="small soft" role="status">
              {measured.prompt} prompt tokens, first text after {(measured.firstSeconds * 1000).toFixed(0)} ms; {measured.tokens} tokens
              {measured.tokens > 1 && measured.seconds > 0 ? `, ${((measured.tokens - 1) / measured.seconds).toFixed(0)} per second` : ''}
            </span>
          )}
        </div>
        <details>
          <summary class="small">Settings</summary>
          <div class="stack tight">
            {chats && (
              <div class="field">
                <label for="chat-system">The system says first</label>
                <textarea id="chat-system" rows={2} value={system} onInput={(event) => setSystem(event.currentTarget.value)} />
              </div>
            )}
            <div class="row">
              <div class="field">
                <label for="chat-temperature">Temperature</label>
                <input id="chat-temperature" type="number" min={0} max={5} step={0.1} value={temperature} onInput={(event) => setTemperature(Number(event.currentTarget.value))} />
              </div>
              <div class="field">
                <label for="chat-most">Tokens at most</label>
                <input id="chat-most" type="number" min={1} max={4096} value={most} onInput={(event) => setMost(Math.max(1, Math.round(Number(event.currentTarget.value))))} />
              </div>
            </div>
          </div>
        </details>
      </form>
    </section>
  );
}
