"""Devices, leases, the configuration, and what happens to processes and threads."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading

import pytest

import tenon as tn

ROOT = os.environ.get("TENON_SOURCE") or os.path.join(os.path.dirname(__file__), "..", "..")


def test_devices_are_listed_without_opening_them(card):
    found = {device.id: device for device in tn.devices()}
    assert found["cpu:0"].available and found["cpu:0"].kind == "cpu"
    assert found[card].kind == "tenstorrent"
    assert str(found[card]) == card
    assert tn.status()[card]["state"] == "closed"
    assert "<table>" in tn.devices()._repr_html_()


def test_a_request_decides_where_an_array_is_evaluated(card):
    x = (tn.array([1.0, 2.0]) + 1).on(card)
    assert tn.eval(x).device == card
    assert x.device == card
    assert tn.eval(x * 2, device="cpu").device == "cpu:0"


def test_arrays_move_and_outlive_their_device(card):
    x = tn.array([1.0, 2.0]).to_device(card)
    assert x.device == card
    tn.close(card)
    assert x.tolist() == [1.0, 2.0]
    assert x.to_device("host").device == "host"


def test_an_unknown_device_is_refused_with_those_there_are():
    with pytest.raises(LookupError, match="nonsense") as error:
        tn.eval(tn.array([1.0]) + 1, device="nonsense")
    assert error.value.code == "not_found"


def test_a_context_gives_the_default_device(card):
    with tn.device(card):
        assert tn.eval(tn.array([1.0]) + 1).device == card
        with tn.device("cpu"):
            assert tn.eval(tn.array([1.0]) + 2).device == "cpu:0"
        seen = []
        thread = threading.Thread(target=lambda: seen.append(tn.eval(tn.array([1.0]) + 3).device))
        thread.start()
        thread.join()
        assert seen == ["cpu:0"]
    assert tn.eval(tn.array([1.0]) + 4).device == "cpu:0"


def test_a_lease_covers_many_programs(card):
    with tn.lease(card, timeout=30) as lease:
        assert lease.is_held and lease.device == card
        for i in range(3):
            assert tn.eval((tn.array([1.0]) * i).on(card)).device == card
        assert not lease.should_yield
    assert not lease.is_held
    assert tn.status()[card]["counters"]["opens"] == 1


def test_a_lease_that_others_hold_times_out_and_tells_the_place(card):
    holding, done = threading.Event(), threading.Event()

    def hold():
        with tn.lease(card):
            holding.set()
            done.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    holding.wait(30)
    places = []
    try:
        with pytest.raises(TimeoutError), tn.lease(card, timeout=0.05, on_wait=places.append):
            pass
        assert places and places[0].ahead == 1

        def fail(place):
            raise KeyError("from the callback")

        with pytest.raises(KeyError, match="from the callback"), tn.lease(card, timeout=30, on_wait=fail):
            pass
        with pytest.raises(TimeoutError):
            tn.eval(tn.array([1.0]).on(card) + 1, timeout=0.05)
    finally:
        done.set()
        thread.join()


def test_progress_is_told_and_may_end_the_run(card):
    stages = []
    tn.eval(tn.array([1.0]) + 41, device=card, on_progress=lambda progress: stages.append(progress.stage))
    assert stages[-4:] == ["compiling", "uploading", "computing", "downloading"]

    def fail(progress):
        raise KeyError(progress.stage)

    with pytest.raises(KeyError):
        tn.eval(tn.array([1.0]) + 42, on_progress=fail)


def test_configuration():
    before = tn.config.get("keep_open")
    tn.config.set(keep_open="linger", linger_seconds=0.5)
    assert tn.config.keep_open == "linger" and tn.config["linger_seconds"] == "0.5"
    tn.config.set(keep_open=before)
    with pytest.raises(ValueError, match="memory_fraction"):
        tn.config.set(memory_fraction=7)
    with pytest.raises(LookupError):
        tn.config.set(no_such_setting=1)
    assert "prefer" in repr(tn.config)


def test_explain_names_a_device_and_a_reason():
    decision = tn.explain(tn.array([1.0]) + 1)
    assert decision["reason"] and "cpu:0" in repr(decision)
    assert (tn.array([1.0]) + 1).explain()["device"] == decision["device"]


def test_the_queue_lists_every_device():
    assert any(queue["device"] == "cpu:0" for queue in tn.queue())
    assert "<table>" in tn.queue()._repr_html_()


def test_import_opens_nothing_and_needs_no_numpy(python):
    out = python(
        """
        import os, sys, tenon
        print("numpy" in sys.modules, len(os.listdir("/proc/self/task")))
        print(any(name.startswith("/dev/") and "null" not in name and "pts" not in name and "random" not in name
                  for name in (os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")
                               if os.path.islink(f"/proc/self/fd/{fd}"))))
        """.replace("\n        ", "\n")
    )
    assert out.split() == ["False", "1", "False"]


def test_a_forked_child_computes_on_the_cpu(python):
    out = python(
        textwrap.dedent("""
        import os, sys, tenon as tn
        x = tn.arange(100000, dtype=tn.float64) + 1
        assert x.sum().item() == 5000050000.0
        child = os.fork()
        if child == 0:
            y = tn.sin(x) * 2 + tn.arange(100000)
            ok = abs(float(y[0]) - 1.682942) < 1e-5 and float(x.sum()) == 5000050000.0
            os._exit(0 if ok else 1)
        print(os.waitpid(child, 0)[1])
        """)
    )
    assert out == "0"


def test_a_forked_child_gets_a_clear_error_for_other_devices(python):
    out = python(
        textwrap.dedent("""
        import os, tenon as tn
        card = tn.simulate("wormhole", open="1ms")
        x = (tn.array([1.0]) + 1).on(card).eval()
        child = os.fork()
        if child == 0:
            try:
                (x + 1).tolist()
            except RuntimeError as error:
                os._exit(0 if "forked" in str(error) else 2)
            os._exit(3)
        print(os.waitpid(child, 0)[1])
        """)
    )
    assert out == "0"


def test_a_child_forked_while_threads_compute_does_not_hang(python):
    out = python(
        textwrap.dedent("""
        import os, threading, tenon as tn
        stop = threading.Event()
        def work(i):
            n = 0
            while not stop.is_set():
                n += 1
                (tn.arange(64) * n + i).sum().item()
        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        results = set()
        for i in range(40):
            child = os.fork()
            if child == 0:
                import signal
                signal.alarm(30)
                os._exit(0 if (tn.arange(9) * i).sum().item() == 36 * i else 1)
            results.add(os.waitpid(child, 0)[1])
        stop.set()
        print(results)
        """)
    )
    assert out == "{0}"


def test_threads_compute_at_the_same_time():
    results = [None] * 8

    def work(i):
        x = tn.arange(10000, dtype=tn.float64) * i
        for _ in range(20):
            x = x + 1
        results[i] = float(x.sum())

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [i * 49995000.0 + 200000.0 for i in range(8)]


def test_the_interpreter_runs_while_a_device_opens(card):
    tn.close(card)
    slow = tn.simulate("wormhole", open="300ms", id="sim:slow")
    counted = 0
    thread = threading.Thread(target=lambda: tn.eval(tn.array([1.0]) + 1, device=slow))
    thread.start()
    while thread.is_alive():
        counted += 1
    assert counted > 1000


def test_ctrl_c_ends_a_wait_for_a_device():
    program = textwrap.dedent("""
        import sys, threading, tenon as tn
        card = tn.simulate("wormhole", open="1ms")
        held = threading.Event()
        def hold():
            with tn.lease(card):
                held.set()
                threading.Event().wait(60)
        threading.Thread(target=hold, daemon=True).start()
        held.wait()
        def waits(place):
            print("waiting", flush=True)
        for kind in ("lease", "eval"):
            try:
                if kind == "lease":
                    with tn.lease(card, on_wait=waits):
                        pass
                else:
                    tn.eval(tn.array([1.0]) + 1, device=card, on_progress=waits)
            except KeyboardInterrupt:
                print("interrupted", flush=True)
        import os
        os._exit(0)
        """)
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    for _ in range(2):
        assert process.stdout.readline().strip() == "waiting"
        os.kill(process.pid, signal.SIGINT)
        assert process.stdout.readline().strip() == "interrupted"
    assert process.wait(30) == 0


def test_ctrl_c_ends_a_run_at_any_stage():
    """The card computes for an hour, the product of large matrices for minutes: what ends earlier was ended."""
    program = textwrap.dedent("""
        import sys
        import tenon as tn
        card = tn.simulate("wormhole", open="20ms", compute="3600")
        x = tn.ones((2500, 2500)).eval()
        for device, stage in ((card, "opening"), (card, "compiling"), (card, "uploading"), (card, "computing"), ("cpu", "compiling"), ("cpu", "computing")):
            y = x + 1
            for i in range(200):
                y = y @ x * (1 / 2500 + i * 1e-9)
            said = []
            def tell(progress):
                if progress.stage == stage and not said:
                    said.append(True)
                    print(stage, flush=True)
            if stage == "opening":
                tn.close()
            try:
                tn.eval(y, device=device, on_progress=tell)
            except KeyboardInterrupt:
                print("interrupted" if not y.is_evaluated else "too late", flush=True)
            else:
                print("not interrupted", said, flush=True)
        import os
        os._exit(0)
        """)
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    try:
        for stage in ("opening", "compiling", "uploading", "computing", "compiling", "computing"):
            assert process.stdout.readline().strip() == stage
            os.kill(process.pid, signal.SIGINT)
            assert process.stdout.readline().strip() == "interrupted"
        assert process.wait(60) == 0
    finally:
        process.kill()


def test_a_call_chooses_its_device_without_changing_the_settings(card):
    x = tn.ones(3)
    before = dict(tn.config)
    for options in ({"prefer": card}, {"prefer": card, "routing": "pinned"}):
        assert tn.run("x + 1", x=x, **options).device == card
        assert tn.eval(x + 2, **options).device == card
        assert (x + 3).eval(**options).device == card
        assert tn.explain(x + 4, **options)["device"] == card and (x + 5).explain(**options)["device"] == card
        with tn.device("cpu"):  # a call goes before the context
            assert tn.eval(x + 6, **options).device == card
    assert tn.eval(x + 7, routing="fastest").device == "cpu:0"
    assert tn.eval(x + 8).device == "cpu:0" and dict(tn.config) == before
    model = tn.Model.load(os.path.join(ROOT, "tests/fixtures/models/linear.onnx"))
    assert model.run({"x": tn.ones((1, 3))}, prefer=card)["y"].device == card


def test_a_choice_that_cannot_be_made_is_refused():
    x = tn.ones(3)
    with pytest.raises(ValueError, match="names one: cpu"):
        tn.run("x + 1", x=x, device="cpu", prefer="gpu")
    with pytest.raises(ValueError, match="not 'quickest'"):
        tn.eval(x + 1, routing="quickest")
    with pytest.raises(ValueError, match="pinned"):
        tn.eval(x + 1, routing="pinned")
    with pytest.raises(tn.Error):
        tn.eval(x + 1, routing="pinned", prefer="tpu")


def test_processes_take_turns_on_one_card(python):
    source = textwrap.dedent("""
        import tenon as tn
        card = tn.simulate("wormhole", open="5ms", id="sim:shared")
        for i in range(5):
            with tn.lease(card, timeout=60):
                assert ((tn.array([1.0]) * i).on(card) + 1).tolist() == [i + 1.0]
        """)
    processes = [subprocess.Popen([sys.executable, "-c", source], stderr=subprocess.PIPE) for _ in range(3)]
    for process in processes:
        _, error = process.communicate(timeout=90)
        assert process.returncode == 0, error.decode()


@pytest.mark.parametrize("work", ["(x @ x + 1.0).sum().item()", "(x + 1).eval()", "f(x).tolist()", "tn.run('x @ x', x=x)"])
def test_daemon_threads_inside_a_computation_do_not_disturb_the_end(work):
    program = textwrap.dedent(f"""
        import threading, time
        import tenon as tn
        x = tn.ones((300, 300))
        f = tn.jit(lambda a: a * 2 + 1)
        def forever():
            while True:
                {work}
        for _ in range(4):
            threading.Thread(target=forever, daemon=True).start()
        time.sleep(0.2)
        """)
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stderr) == (0, "")


def test_hooks_of_the_end_may_still_compute(python):
    # This one was registered before the package's own, and runs after it.
    program = "import atexit; atexit.register(lambda: print((tn.ones(3) + 1).tolist())); import tenon as tn"
    assert python(program) == "[2.0, 2.0, 2.0]"


def test_arrays_may_outlive_everything(python):
    assert python("import tenon as tn; x = tn.array([1.0]) + 1; x.eval(); print(x.tolist())") == "[2.0]"
