// Which accelerators the server looked for, what it found of each vendor, and what to install.
import { useEffect, useState } from 'preact/hooks';
import { get, type Searched } from '../api';
import { reconnects } from '../connection';
import { sentence } from '../parts/problem';

export function SearchedAccelerators() {
  const [searched, setSearched] = useState<Searched[]>([]);
  useEffect(() => {
    get<{ searched: Searched[] }>('/api/devices')
      .then((answer) => setSearched(answer.searched))
      .catch(() => undefined);
  }, [reconnects.value]);
  if (searched.length === 0) return null;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Accelerators that were looked for">
      <table class="searched small">
        <thead>
          <tr>
            <th scope="col">Vendor</th>
            <th scope="col">What was found</th>
            <th scope="col">What to do</th>
          </tr>
        </thead>
        <tbody>
          {searched.map(({ id, vendor, text, remedy }) => (
            <tr key={id}>
              <th scope="row">{vendor}</th>
              <td>{sentence(text)}</td>
              <td>{remedy ? sentence(remedy) : '–'}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
