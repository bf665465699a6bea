// A file as an input, selected or dropped. Tables of numbers (.csv) are read here and become pasted text; the other formats are
// sent to the server.
import { useRef, useState } from 'preact/hooks';
import { upload } from '../api';
import { problemFrom, sentence } from '../parts/problem';
import { formatBytes, shapeText } from '../numbers';
import { parseTensor } from '../tensor_text';
import type { Input } from './program';

const kText = /\.(csv|tsv|txt)$/i;
const kMostText = 1 << 20; // bytes: a request with larger lists would be refused

interface Taking {
  busy?: string;
  wrong?: string;
}

// Takes a file into |input|: selected in its field, or dropped anywhere on it.
export function useFile(input: Input, onChange: (change: Partial<Input>) => void) {
  const [state, setState] = useState<Taking>({});
  const box = useRef<HTMLInputElement>(null);
  const take = async (file: File | undefined) => {
    if (!file) return;
    setState({ busy: `Sending ${file.name}, ${formatBytes(file.size)} …` });
    try {
      onChange({ kind: 'tensor', source: 'file', ...(kText.test(file.name) ? await fromText(file) : await fromServer(file, input)) });
      setState({});
    } catch (error) {
      // A refused file leaves none: computing with the one before would be a surprise.
      onChange({ kind: 'tensor', source: 'file', file: undefined, tensor: '' });
      if (box.current) box.current.value = '';
      const { detail, hint } = problemFrom(error);
      setState({ wrong: `${file.name}: ${sentence(detail)}${hint ? ` ${sentence(hint)}` : ''}` });
    }
  };
  return { state, take, box };
}

interface Props extends ReturnType<typeof useFile> {
  id: (part: string) => string;
  input: Input;
  onChange: (change: Partial<Input>) => void;
}

export function FileField({ id, input, state, take, box, onChange }: Props) {
  const several = (input.file?.tensors.length ?? 0) > 1;
  const choose = (name: string) => onChange({ tensor: name, dtype: input.file?.tensors.find((each) => each.name === name)?.dtype ?? input.dtype });
  return (
    <>
      <div class="field wide drop">
        <label for={id('file')}>{kAccepted.join(', ')} file, selected or dropped here</label>
        <input id={id('file')} ref={box} type="file" accept={kAccepted.join(',')} onChange={(event) => void take(event.currentTarget.files?.[0])} />
        {state.busy && <span class="hint" role="status">{state.busy}</span>}
        {state.wrong && <span class="wrong break" role="alert">{state.wrong}</span>}
      </div>
      {several && (
        <div class="field wide">
          <label for={id('tensor')}>Tensor</label>
          <select id={id('tensor')} value={input.tensor} onChange={(event) => choose(event.currentTarget.value)}>
            {input.file!.tensors.map((tensor) => (
              <option value={tensor.name}>{`${tensor.name}: ${tensor.dtype} ${shapeText(tensor.shape)}`}</option>
            ))}
          </select>
        </div>
      )}
    </>
  );
}

const kAccepted = ['.npy', '.npz', '.safetensors', '.csv'];

async function fromText(file: File): Promise<Partial<Input>> {
  if (file.size > kMostText) throw new Error(`a text of ${formatBytes(file.size)} is too large to send; save it as .npy`);
  const paste = (await file.text()).trim();
  const { values } = parseTensor(paste);
  return { source: 'paste', paste, shape: '', dtype: values.every(Number.isInteger) ? 'int64' : 'float32' };
}

async function fromServer(file: File, input: Input): Promise<Partial<Input>> {
  const stored = await upload(file);
  return { file: stored, tensor: stored.tensors[0]?.name ?? '', dtype: stored.tensors[0]?.dtype ?? input.dtype };
}
