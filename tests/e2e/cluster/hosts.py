"""Network namespaces as the hosts of a cluster: each has its own network interface and host name; links can be cut and counted.

    enter_own_network()                      # first of all: starts the program again where its networks disturb nobody
    with Hosts(folder, 4) as hosts:
        hosts.start("tn1", ["sleep", "10"])
        hosts.cut("tn1")
"""
import json
import os
import subprocess
import sys

SKIPPED = 77
INSIDE = "TENON_TEST_OWN_NETWORK"


def run(*words, check=True, **options):
    options.setdefault("timeout", 120)
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **options)
    if check and done.returncode != 0:
        raise AssertionError(f"{' '.join(str(w) for w in words)}: status {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done


def enter_own_network():
    """Starts the program again in a network of its own, so that several may run on one machine; skips where that is not permitted."""
    if os.environ.get(INSIDE):
        return
    setup = ("mkdir -p /run/netns && mount -t tmpfs tenon-test /run/netns && ip link set lo up && "
             "ip link add probe type bridge && ip netns add probe && ip netns del probe && ip link del probe")
    wrapped = ["unshare", "--net", "--mount", "sh", "-c"]
    try:
        probe = subprocess.run([*wrapped, setup], capture_output=True, text=True, timeout=60)
    except OSError as error:
        print(f"network namespaces need the program {error.filename}")
        sys.exit(SKIPPED)
    if probe.returncode != 0:
        print(f"network namespaces are not permitted here: {probe.stderr.strip().splitlines()[-1:] or probe.returncode}")
        sys.exit(SKIPPED)
    os.environ[INSIDE] = "1"
    os.execvp("unshare", [*wrapped, setup + ' && exec "$@"', "sh", sys.executable, *sys.argv])


class Hosts:
    """Hosts tn1, tn2, ... with the addresses 10.77.0.1, ...; this process is 10.77.0.254."""
    network = "10.77.0.0/24"

    def __init__(self, count):
        self.names = [f"tn{i}" for i in range(1, count + 1)]
        self.addresses = [f"10.77.0.{i}" for i in range(1, count + 1)]

    def __enter__(self):
        run("ip", "link", "add", "tnbr", "type", "bridge")
        run("ip", "addr", "add", "10.77.0.254/24", "dev", "tnbr")
        run("ip", "link", "set", "tnbr", "up")
        for name, address in zip(self.names, self.addresses):
            run("ip", "netns", "add", name)
            run("ip", "link", "add", self.link(name), "type", "veth", "peer", "name", "eth0", "netns", name)
            run("ip", "link", "set", self.link(name), "master", "tnbr", "up")
            run("ip", "-n", name, "addr", "add", f"{address}/24", "dev", "eth0")
            run("ip", "-n", name, "link", "set", "eth0", "up")
            run("ip", "-n", name, "link", "set", "lo", "up")
        return self

    def __exit__(self, *_):
        for name in self.names:
            run("ip", "netns", "del", name, check=False)
        run("ip", "link", "del", "tnbr", check=False)

    @staticmethod
    def link(name):
        return f"{name}v"

    @staticmethod
    def command(name, words):
        """|words| on a host: its network and its name, the files of this machine. (`ip netns exec` would hide the cgroups from Slurm.)"""
        return ["nsenter", f"--net=/run/netns/{name}", "unshare", "-u", "sh", "-c", f'hostname {name}; exec "$@"', "sh", *words]

    def cut(self, name):
        run("ip", "link", "set", self.link(name), "down")

    def mend(self, name):
        run("ip", "link", "set", self.link(name), "up")

    def sent_bytes(self, name):
        """What the host has sent over its interface."""
        shown = json.loads(run("ip", "-n", name, "-s", "-j", "link", "show", "eth0").stdout)
        return shown[0]["stats64"]["tx"]["bytes"]

    def remote_shell(self, folder):
        """A stand-in for ssh, for mpirun: `agent ADDRESS COMMAND...`."""
        path = os.path.join(folder, "remote_shell")
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\nhost=tn${1##*.}; shift\n"
                       "exec nsenter --net=/run/netns/$host unshare -u sh -c \"hostname $host; $*\"\n")
        os.chmod(path, 0o755)
        return path

    def mpirun(self, folder, ranks=None):
        """The words that start one process on each host."""
        ranks = ranks or len(self.names)
        return ["mpirun.openmpi", "--allow-run-as-root", "--mca", "plm", "rsh", "--mca", "plm_rsh_agent", self.remote_shell(folder),
                "--host", ",".join(self.addresses), "--map-by", "node", "--oversubscribe", "-n", str(ranks), "--mca", "pml", "ob1",
                "--mca", "mpi_yield_when_idle", "1",  # all hosts share the cores of this machine
                "--mca", "btl", "self,tcp", "--mca", "btl_tcp_if_include", self.network, "--mca", "oob_tcp_if_include", self.network]
