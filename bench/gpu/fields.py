#!/usr/bin/env python3
"""Compares what tenon says of the NVIDIA cards of this machine with what nvidia-smi says, field by field.

    bench/gpu/fields.py TENON

Prints a table; exits with 1 where a card is listed twice or not at all, a field is empty, or the two differ. What changes while one looks
(memory, power, temperature) may differ a little.
"""

import csv
import json
import re
import subprocess
import sys

MIB = 1 << 20


def output_of(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f'fields.py: {command[0]} cannot be asked: {error}')


def number(text):
    try:
        return float(text)
    except (TypeError, ValueError):
        return None


def bus(text):
    """00000000:19:00.0 and 0000:19:00.0 are the same place."""
    domain, rest = (text or '').lower().split(':', 1)
    return f'{int(domain, 16):04x}:{rest}'


def near(a, b, part, least):
    return a is not None and b is not None and abs(a - b) <= max(least, part * abs(b))


# Ours, nvidia-smi's name of it, and when the two are the same.
FIELDS = [
    ('name', 'name', lambda a, b: a == b),
    ('uuid', 'uuid', lambda a, b: a == b),
    ('pci_address', 'pci.bus_id', lambda a, b: bus(a) == bus(b)),
    ('memory_total_bytes', 'memory.total', lambda a, b: a // MIB == int(b)),
    ('memory_free_bytes', 'memory.free', lambda a, b: near(a / MIB, number(b), 0.01, 64)),
    ('driver_version', 'driver_version', lambda a, b: a == b),
    ('compute_capability', 'compute_cap', lambda a, b: a == b),
    ('power_watts', 'power.draw', lambda a, b: near(a, number(b), 0.25, 15)),
    ('power_limit_watts', 'power.limit', lambda a, b: near(a, number(b), 0, 0.5)),
    ('temperature_celsius', 'temperature.gpu', lambda a, b: near(a, number(b), 0, 3)),
    ('serial', 'serial', lambda a, b: a == b or number(b) is None and a is None),
]
# What nvidia-smi does not say, or not so: it must be there.
FILLED = ['id', 'kind', 'vendor', 'architecture', 'backends', 'runtime_version', 'numa_node', 'supports_mixed_precision', 'supports_distributed',
          'exclusive', 'cost_per_hour']


def main(tenon):
    devices = json.loads(output_of(tenon, 'devices', '--json'))['devices']
    query = ','.join(theirs for _, theirs, _ in FIELDS)
    cards = list(csv.reader(output_of('nvidia-smi', f'--query-gpu={query}', '--format=csv,noheader,nounits').splitlines(), skipinitialspace=True))
    version = re.search(r'CUDA Version: *([0-9.]+)', output_of('nvidia-smi'))
    failed = False

    def line(field, ours, theirs, is_same):
        nonlocal failed
        failed = failed or not is_same
        print(f'| {field} | {ours} | {theirs} | {"yes" if is_same else "**no**"} |')

    listed = [device for device in devices if device['kind'] == 'gpu']
    print('| field | tenon | nvidia-smi | same |\n| --- | --- | --- | --- |')
    line('cards', len(listed), len(cards), len(listed) == len(cards))
    for card in cards:
        uuid = card[[theirs for _, theirs, _ in FIELDS].index('uuid')]
        ours = [device for device in devices if device['uuid'] == uuid]
        line(f'listed ({uuid})', len(ours), 1, len(ours) == 1)
        if len(ours) != 1:
            continue
        for (field, _, is_same), theirs in zip(FIELDS, card):
            value = ours[0][field]
            line(field, value, theirs, is_same(value, theirs) if value is not None else field == 'serial' and number(theirs) is None)
        if version:
            line('runtime_version', ours[0]['runtime_version'], version[1], version[1] in (ours[0]['runtime_version'] or ''))
        for field in FILLED:
            value = ours[0][field]
            line(field, value, '', value not in (None, '', []))
    return 1 if failed else 0


if __name__ == '__main__':
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
