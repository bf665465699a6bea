#!/usr/bin/env python3
"""tenon cluster and packaging/slurm with a real Slurm: four nodes in network namespaces, each with two simulated devices.

usage: check_slurm.py TENON PACKAGING [--jobs N] [--node-kills N]      (root, Linux; the default is a few jobs)

Checks: status; a mesh over two nodes; no device is used by two jobs at once; a program outside of Slurm waits for a job;
a killed job's devices are free for the next. With --node-kills: all processes of a node are killed, its job runs again elsewhere,
and the node takes jobs again when it is back (half a minute each: Slurm has to give the node up).
"""
import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

from hosts import SKIPPED, Hosts, enter_own_network, run

NODES = 4
DEVICES = 2
PROGRAMS = ["slurmctld", "slurmd", "srun", "salloc", "scontrol", "squeue", "munged", "ip", "nsenter", "mpirun.openmpi"]


def eventually(seconds, condition, what):
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, what
        time.sleep(0.1)


class Cluster:
    def __init__(self, hosts, folder, tenon, packaging):
        self.hosts, self.folder, self.tenon, self.packaging = hosts, folder, tenon, packaging
        self.daemons = []
        self.nodes = hosts.names
        self.environment = dict(os.environ, SLURM_CONF=f"{folder}/slurm.conf", PATH=f"{folder}/bin:{os.environ['PATH']}")

    def start(self):
        self.write_files()
        os.makedirs(f"{self.folder}/munge", mode=0o700)
        with open(f"{self.folder}/munge/key", "wb") as key:
            key.write(os.urandom(128))
        os.chmod(f"{self.folder}/munge/key", 0o400)
        self.daemon(["munged", "-F", "--force", f"--key-file={self.folder}/munge/key", f"--socket={self.folder}/munge.sock",
                     f"--pid-file={self.folder}/munge/pid", f"--log-file={self.folder}/munge/log", f"--seed-file={self.folder}/munge/seed"])
        eventually(20, lambda: os.path.exists(f"{self.folder}/munge.sock"), "munged did not start")
        self.daemon(["slurmctld", "-D", "-f", f"{self.folder}/slurm.conf", "-c"])
        for node in self.nodes:
            self.start_node(node)
        self.wait_until_idle()

    def start_node(self, node):
        self.daemon(self.hosts.command(node, ["slurmd", "-D", "-N", node, "-f", f"{self.folder}/slurm.conf"]))

    def wait_until_idle(self):
        eventually(90, lambda: self.slurm("sinfo", "-h", "-t", "idle", "-o", "%D", check=False).stdout.strip() == str(NODES),
                   "the nodes did not come up: " + self.log())

    def log(self):
        text = ""
        for name in ("slurmctld.log", "slurmd.tn1.log"):
            path = f"{self.folder}/{name}"
            if os.path.exists(path):
                with open(path, encoding="utf-8", errors="replace") as file:
                    text += f"\n{name}:\n" + "".join(file.readlines()[-15:])
        return text

    def daemon(self, command):
        self.daemons.append(subprocess.Popen(command, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                             start_new_session=True))

    def write_files(self):
        os.makedirs(f"{self.folder}/bin")
        os.makedirs(f"{self.folder}/state")
        os.makedirs(f"{self.folder}/dev")
        for node in self.nodes:
            os.makedirs(f"{self.folder}/run.{node}")
            for device in range(DEVICES):
                path = f"{self.folder}/dev/{node}_{device}"
                os.mknod(path, 0o20666, os.makedev(1, 3))
        # Every node has its own devices, queue and state, as separate machines would.
        wrapper = f"""#!/bin/sh
node=${{SLURMD_NODENAME:-$(hostname)}}
export TENON_RUN_DIR={self.folder}/run.$node TENON_STATE_DIR={self.folder}/run.$node TENON_THREADS=1
export TENON_SIM='gpu,exclusive,open=1ms,close=1ms;gpu,exclusive,open=1ms,close=1ms' TENON_ALLOW_SIMULATED=true
exec {self.tenon} "$@"
"""
        self.script("bin/tenon", wrapper)
        self.script("bin/mpirun", f"""#!/bin/sh
exec mpirun.openmpi --allow-run-as-root --mca plm slurm --mca btl self,tcp,vader \\
  --mca btl_tcp_if_include 10.77.0.0/24 --mca oob_tcp_if_include 10.77.0.0/24 --map-by node --oversubscribe "$@"
""")
        for hook in ("prolog", "epilog", "task_prolog"):
            self.script(hook, f"""#!/bin/sh
export PATH={self.folder}/bin:$PATH TENON_SLURM_PREFIX=sim: TENON_SLURM_STATE={self.folder}/state/$SLURMD_NODENAME TENON_SLURM_WAIT=30
exec {self.packaging}/slurm/{hook}
""")
        with open(f"{self.folder}/gres.conf", "w", encoding="utf-8") as file:
            for node in self.nodes:
                file.write(f"NodeName={node} Name=gpu File={self.folder}/dev/{node}_[0-{DEVICES - 1}]\n")
        with open(f"{self.folder}/slurm.conf", "w", encoding="utf-8") as file:
            file.write(f"""ClusterName=tenon
SlurmctldHost={socket.gethostname()}(10.77.0.254)
SlurmctldPort=17817
SlurmdPort=17818
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={self.folder}/munge.sock
CryptoType=crypto/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
ReturnToService=2
SlurmdTimeout=10
SlurmctldPidFile={self.folder}/slurmctld.pid
SlurmctldLogFile={self.folder}/slurmctld.log
SlurmdPidFile={self.folder}/slurmd.%n.pid
SlurmdLogFile={self.folder}/slurmd.%n.log
SlurmdSpoolDir={self.folder}/spool.%n
StateSaveLocation={self.folder}/spool
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1,sched_min_interval=0,bf_interval=1
GresTypes=gpu
PrologFlags=Alloc
Prolog={self.folder}/prolog
Epilog={self.folder}/epilog
TaskProlog={self.folder}/task_prolog
NodeName=tn[1-{NODES}] NodeAddr=10.77.0.[1-{NODES}] CPUs=8 RealMemory=500 Gres=gpu:{DEVICES} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
""")
        for name in ["spool"] + [f"spool.{node}" for node in self.nodes]:
            os.makedirs(f"{self.folder}/{name}")

    def script(self, name, text):
        path = f"{self.folder}/{name}"
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o755)

    def slurm(self, *words, check=True):
        return run(*words, check=check, env=self.environment)

    def cluster(self, *words, check=True):
        return self.slurm(f"{self.folder}/bin/tenon", "cluster", *words, check=check)

    def stop(self):
        self.slurm("scancel", "--user=root", check=False)
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in self.daemons:
            try:
                daemon.wait(15)
            except subprocess.TimeoutExpired:
                daemon.kill()
        for node in self.nodes:
            self.kill_node(node)

    def kill_node(self, node):
        """Every process of the node, as if it lost its power."""
        for pid in run("ip", "netns", "pids", node, check=False).stdout.split():
            run("kill", "-KILL", pid, check=False)


def check_status(cluster):
    nodes = json.loads(cluster.cluster("status", "--json").stdout)["nodes"]
    assert [(n["name"], n["devices"], n["devices_in_use"]) for n in nodes] == [(name, DEVICES, 0) for name in cluster.nodes], nodes
    assert "tn3" in cluster.cluster("status").stdout


def check_mesh(cluster):
    done = cluster.cluster("run", "--nodes", "2", "--per-node", "2", "--", "gelu(x @ w) @ v", "x=randn([6, 16], seed=1)",
                           "w=randn([16, 32], seed=2)", "v=randn([32, 4], seed=3)", "--mesh", "model=4", "--shard", "w=-,model", "--shard",
                           "v=model,-", "--compare")
    assert "match" in done.stdout and done.stdout.count("/sim:") == 4, done.stdout + done.stderr


# Each job writes the devices it has when it begins and when it ends; at no time do two jobs have the same.
def check_many(cluster, jobs):
    journal = f"{cluster.folder}/journal"
    script = (f'for d in $(echo $SLURM_STEP_GPUS$SLURM_JOB_GPUS | tr , " "); do echo "begin $SLURMD_NODENAME $d $SLURM_JOB_ID" >>{journal}; '
              f'tenon run "1 + 1" --device sim:$d --timeout 0 >/dev/null || echo "refused $SLURMD_NODENAME $d $SLURM_JOB_ID" >>{journal}; '
              f'echo "end $SLURMD_NODENAME $d $SLURM_JOB_ID" >>{journal}; done')
    running = []
    for _ in range(jobs):
        running.append(subprocess.Popen(["srun", "--quiet", "-N1", "-n1", "--gres=gpu:1", "sh", "-c", script], env=cluster.environment,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        while sum(job.poll() is None for job in running) >= 24:
            time.sleep(0.02)
    for job in running:
        assert job.wait(120) == 0
    holders, ended = {}, 0
    with open(journal, encoding="utf-8") as lines:
        for line in lines:
            what, node, device, job = line.split()
            assert what != "refused", line
            if what == "begin":
                assert (node, device) not in holders, f"{node} {device}: jobs {holders[node, device]} and {job}"
                holders[node, device] = job
            else:
                assert holders.pop((node, device)) == job
                ended += 1
    assert ended == jobs, (ended, jobs)


# A program outside of Slurm takes its turn with the jobs of the node.
def check_outside(cluster):
    marker = f"{cluster.folder}/inside"
    job = subprocess.Popen(["srun", "--quiet", "-w", "tn1", "-n1", "--gres=gpu:2", "sh", "-c", f"touch {marker}; sleep 3"], env=cluster.environment)
    eventually(30, lambda: os.path.exists(marker), "the job did not start")
    outside = dict(cluster.environment, SLURMD_NODENAME="tn1")
    busy = run(f"{cluster.folder}/bin/tenon", "run", "1 + 1", "--device", "sim:0", "--timeout", "0", check=False, env=outside)
    assert busy.returncode == 4, busy
    assert run(f"{cluster.folder}/bin/tenon", "run", "1 + 1", "--device", "sim:0", "--timeout", "60", env=outside).stdout.startswith("2")
    assert job.wait(60) == 0


def check_killed(cluster):
    marker = f"{cluster.folder}/killed"
    job = subprocess.Popen(["srun", "--quiet", "-w", "tn2", "-n1", "--gres=gpu:2", "sh", "-c", f"touch {marker}; sleep 1000"],
                           env=cluster.environment, stderr=subprocess.DEVNULL)
    eventually(30, lambda: os.path.exists(marker), "the job did not start")
    cluster.slurm("scancel", "--user=root")
    job.wait(60)
    done = cluster.slurm("srun", "--quiet", "-w", "tn2", "-n1", "--gres=gpu:2", "sh", "-c", "tenon run '1 + 1' --device sim:1 --timeout 0")
    assert done.stdout.startswith("2"), done


def check_killed_node(cluster, number):
    """The job of a node that is gone starts again on another one; the node comes back clean."""
    journal = f"{cluster.folder}/requeued.{number}"
    cluster.script(f"requeued.{number}.sh", f"""#!/bin/sh
echo $SLURMD_NODENAME >>{journal}
tenon run '1 + 1' --device sim:$SLURM_JOB_GPUS --timeout 0 >/dev/null || echo refused >>{journal}
[ $(wc -l <{journal}) -gt 1 ] || exec sleep 1000
""")
    cluster.slurm("sbatch", "--quiet", "--requeue", "-N1", "-n1", "--gres=gpu:1", "-o", "/dev/null", f"{cluster.folder}/requeued.{number}.sh")

    def nodes():
        if not os.path.exists(journal):
            return []
        with open(journal, encoding="utf-8") as lines:
            return lines.read().split()

    eventually(60, lambda: nodes(), "the job did not start")
    killed = nodes()[0]
    begin = time.monotonic()
    cluster.kill_node(killed)
    eventually(180, lambda: len(nodes()) > 1, "the job did not start again: " + cluster.log())
    seconds = time.monotonic() - begin
    assert "refused" not in nodes(), nodes()
    assert nodes()[1] != killed, nodes()
    cluster.start_node(killed)
    cluster.wait_until_idle()
    done = cluster.slurm("srun", "--quiet", "-w", killed, "-n1", "--gres=gpu:2", "sh", "-c", "tenon run '1 + 1' --device sim:1 --timeout 0")
    assert done.stdout.startswith("2"), done
    return seconds


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tenon")
    parser.add_argument("packaging")
    parser.add_argument("--jobs", type=int, default=24)
    parser.add_argument("--node-kills", type=int, default=0)
    arguments = parser.parse_args()
    missing = [program for program in PROGRAMS if not shutil.which(program)]
    if missing:
        print(f"Slurm or what it needs is not installed here: {', '.join(missing)}")
        return SKIPPED
    enter_own_network()
    folder = tempfile.mkdtemp()
    os.chmod(folder, 0o755)
    with Hosts(NODES) as hosts:
        return check_all(Cluster(hosts, folder, os.path.abspath(arguments.tenon), os.path.abspath(arguments.packaging)), arguments)


def check_all(cluster, arguments):
    try:
        cluster.start()
        for check in (check_status, check_mesh, check_outside, check_killed):
            check(cluster)
            print(f"{check.__name__[6:]}: right")
        check_many(cluster, arguments.jobs)
        print(f"{arguments.jobs} jobs: no device was used twice")
        for number in range(arguments.node_kills):
            seconds = check_killed_node(cluster, number)
            print(f"a killed node's job ran again on another node after {seconds:.0f} s")
    finally:
        cluster.stop()
        shutil.rmtree(cluster.folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
