#!/usr/bin/env python3
"""tenon encode of many sentences: killed at random and continued, and shared by workers on two simulated devices.

    bench/encode.py MODEL [--program build/release/tenon] [--sentences 100000] [--kills 25] [--seed 1]

MODEL is a folder with a model and its tokenizer; sentences are of words that the tokenizer knows. Prints Markdown:

- the sentences are encoded once without a break, and once by a program that is ended with SIGKILL after a random time, and started again,
  until |kills| have hit it; then the two files are compared byte by byte;
- the first sentences are encoded by one worker on one simulated device, two workers on one, and four on two. Such a device takes one user at a time,
  and a run takes 40 ms whatever it computes, so that the times show how the work is shared and not how fast this machine computes.
"""
import argparse, json, os, random, re, signal, subprocess, tempfile, time


def sentences(options, count):
    with open(os.path.join(options.model, "tokenizer.json")) as file:
        words = sorted(word for word in json.load(file)["model"]["vocab"] if word.isalpha() and word.isascii())
    generator = random.Random(options.seed)
    return [" ".join(generator.choice(words) for _ in range(generator.randint(1, 14))) for _ in range(count)]


def start(options, folder, *arguments):
    environment = dict(os.environ, TENON_RUN_DIR=os.path.join(folder, "run"), TENON_STATE_DIR=os.path.join(folder, "state"))
    return subprocess.Popen([options.program, "encode", "--model", options.model, *arguments], stderr=subprocess.PIPE, text=True, env=environment)


def finish(process):
    talk = process.communicate()[1]
    if process.returncode != 0:
        raise SystemExit(talk)
    return talk


def kill_and_continue(options, folder):
    lines, whole, killed = (os.path.join(folder, name) for name in ("lines.txt", "whole.npy", "killed.npy"))
    with open(lines, "w") as file:
        file.write("\n".join(sentences(options, options.sentences)) + "\n")
    begin = time.monotonic()
    finish(start(options, folder, "--file", lines, "-o", whole, "--device", "cpu"))
    seconds = time.monotonic() - begin
    generator, kills, starts, went_on = random.Random(options.seed + 1), 0, 0, []
    begin = time.monotonic()
    while True:
        process = start(options, folder, "--file", lines, "-o", killed, "--device", "cpu")
        starts += 1
        try:
            if kills == options.kills:
                talk = finish(process)
            else:
                # From before the model is loaded to well within the work.
                process.wait(timeout=generator.uniform(0, 2.5 * seconds / options.kills))
                talk = finish(process)
            break
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            talk = process.communicate()[1]
            kills += process.returncode == -signal.SIGKILL
        found = re.search(r"going on after (\d+) of", talk)
        if found:
            went_on.append(int(found.group(1)))
    again = time.monotonic() - begin
    left = [name for name in os.listdir(folder) if ".part" in name]
    with open(whole, "rb") as a, open(killed, "rb") as b:
        is_same = a.read() == b.read()
    print("| sentences | without a break, s | killed | started | with kills, s | continued after | files equal | left behind |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    print("| %d | %.0f | %d times | %d times | %.0f | %s | %s | %s |" % (
        options.sentences, seconds, kills, starts, again, ", ".join(map(str, went_on)), "yes" if is_same else "NO", ", ".join(left) or "nothing"))
    return is_same and not left


def share(options, folder):
    lines = os.path.join(folder, "few.txt")
    with open(lines, "w") as file:
        file.write("\n".join(sentences(options, 2048)) + "\n")
    print("\n| workers | devices | texts/s | times one worker |\n| --- | --- | --- | --- |")
    rates = {}
    for name, devices in (("1", "sim:0"), ("2", "sim:0,sim:0"), ("4", "sim:0,sim:0,sim:1,sim:1")):
        best = 0.0
        for _ in range(3):
            talk = finish(start(options, folder, "--file", lines, "-o", os.path.join(folder, "shared.npy"), "--batch", "16", "--device", devices,
                                *["--sim=wormhole,open=5ms,close=5ms,compute=40ms"] * 2))
            rate = re.search(r"([\d.]+)(k?) texts/s", talk)
            best = max(best, float(rate.group(1)) * (1000 if rate.group(2) else 1))
        rates[name] = best
        print("| %s | %d | %.0f | %.2f |" % (name, len(set(devices.split(","))), best, best / rates["1"]), flush=True)
    return rates["4"] / rates["2"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--program", default="build/release/tenon")
    parser.add_argument("--sentences", type=int, default=100000)
    parser.add_argument("--kills", type=int, default=25)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "run"), 0o700)
        is_right = kill_and_continue(options, folder)
        gain = share(options, folder)
    print("\nFour workers on two devices do %.2f times the work of two workers on one." % gain)
    raise SystemExit(0 if is_right else 1)


if __name__ == "__main__":
    main()
