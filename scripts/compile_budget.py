#!/usr/bin/env python3
"""Measures the compile time of small programs that use the library.

    scripts/compile_budget.py [--rounds N] [--compiler CXX] [--json FILE]

Prints seconds of processor time (user, best of N; 3) and peak memory of the compiler at -O0 for the quickstart
(examples/01_quickstart.cpp) in each mode, for three other compositions against nni::compiled, and for units that only include the library. The baseline of a mode has the same
Boost headers as the quickstart in that mode and does one co_spawn, one timer, one channel and one JSON parse. A ratio is
a figure beside its baseline, measured by turns.

The exit code reports whether everything compiled, not whether goals were met.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
QUICKSTART = ROOT / "examples" / "01_quickstart.cpp"
MODES = {"compiled": ["-DNNI_SEPARATE_COMPILATION", "-DBOOST_ASIO_SEPARATE_COMPILATION"], "header_only": []}
GOALS = {"compile_compiled": 1.6, "compile_header_only": 4, "single_header": 1.3, "compile_local": 1.6, "compile_journal": 1.6,
         "compile_session": 1.6}
BASELINE = """\
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/channel.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/json.hpp>
#include <iostream>

namespace asio = boost::asio;
using Channel = asio::experimental::channel<void(boost::system::error_code, int)>;

asio::awaitable<void> work(Channel& channel) {
  asio::steady_timer timer(channel.get_executor(), std::chrono::milliseconds(1));
  co_await timer.async_wait(asio::use_awaitable);
  const int received = co_await channel.async_receive(asio::use_awaitable);
  std::cout << received << boost::json::parse("[1, 2]").as_array().size();
}

int main() {
  asio::io_context io;
  Channel channel(io, 1);
  channel.try_send(boost::system::error_code{}, 1);
  asio::co_spawn(io, work(channel), asio::detached);
  io.run();
}
"""


COMPONENTS = ["-DNNI_WITH_SQLITE=1", "-DNNI_WITH_HTTP=1", "-DNNI_WITH_PROCESS=1"]
COMPOSITIONS = {
    "local": """\
#include <nni/assessing/median_stop.hpp>
#include <nni/console/console.hpp>
#include <nni/datastore/sqlite.hpp>
#include <nni/experiment/experiment.hpp>
#include <nni/platforms/local.hpp>
#include <nni/tuning/tpe.hpp>
int main() {
  nni::ExperimentOptions options;
  options.trial_command = nni::Command("true");
  nni::Experiment experiment{
      options, nni::platforms::Local{}, nni::datastore::Sqlite{},
      nni::tuning::Tpe{nni::SearchSpace{nni::uniform("x", 0.0, 1.0)}}, nni::assessing::MedianStop{}};
  experiment.observe(nni::ConsoleObserver());
  experiment.run();
}
""",
    "journal": """\
#include <nni/datastore/journal.hpp>
#include <nni/nni.hpp>
int main() {
  nni::Experiment experiment{
      nni::ExperimentOptions{.max_trials = 4},
      nni::platforms::InProcess{[](nni::TrialHandle& trial) {
        trial.report_final_result(trial.parameter<double>("x"));
      }},
      nni::datastore::Journal{}, nni::tuning::Random{nni::SearchSpace{nni::uniform("x", 0.0, 1.0)}}};
  experiment.run();
}
""",
    "session": """\
#include <nni/platforms/local.hpp>
#include <nni/session/training_session.hpp>
int main() {
  nni::TrainingSessionOptions options;
  options.trial_command = nni::Command("true");
  nni::TrainingSession session{options, nni::platforms::Local{}};
  const nni::TrialJobDetail trial = session.submit_trial_job(nni::Parameters("{}"));
  session.wait_trial_job(trial.trial);
  session.clean_up();
}
""",
}


class Broken(Exception):
    """A unit that does not compile."""


class Compiler:
    def __init__(self, name, folder):
        self.name, self.folder = name, folder

    def command(self, source, options):
        return [self.name, "-std=c++20", "-O0", *options, "-c", str(source), "-o", os.devnull]

    def unit(self, name, text):
        path = self.folder / f"{name}.cpp"
        path.write_text(text)
        return path

    def measure(self, source, options):
        """@returns seconds of processor time in user mode, and mebibytes at the peak"""
        child = subprocess.Popen(self.command(source, options), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        errors = child.stderr.read().decode(errors="replace")
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            raise Broken(f"{source} does not compile:\n{errors[:2000]}")
        return usage.ru_utime, usage.ru_maxrss / 1024

    def boost_headers(self, source, options):
        """Those that files of this project include themselves, in the order of their first use."""
        listing = subprocess.run(
            [self.name, "-std=c++20", *options, "-H", "-fsyntax-only", str(source)], stderr=subprocess.PIPE, text=True,
            check=True).stderr
        parents, found = {0: str(source)}, []
        for line in listing.splitlines():
            dots, _, path = line.partition(" ")
            if not dots or dots.strip("."):
                continue
            parents[len(dots)] = path
            name = path.partition("/boost/")[2]
            if name and "/boost/" not in parents[len(dots) - 1] and f"boost/{name}" not in found:
                found.append(f"boost/{name}")
        return found


def measure_all(compiler, rounds):
    """@returns name: (seconds, mebibytes)"""
    tree, single = [f"-I{ROOT / 'include'}"], [f"-I{compiler.folder / 'single'}"]
    subprocess.run([sys.executable, ROOT / "scripts" / "amalgamate.py", compiler.folder / "single"], check=True)
    only = compiler.unit("only_includes", "#include <nni/nni.hpp>\n")
    bodies = compiler.unit("bodies", "#define NNI_IMPLEMENTATION\n#include <nni/nni.hpp>\n")
    units = {}
    for mode, options in MODES.items():
        headers = compiler.boost_headers(QUICKSTART, [*tree, *options])
        text = "".join(f"#include <{header}>\n" for header in headers) + BASELINE
        units[f"baseline.{mode}"] = (compiler.unit(f"baseline_{mode}", text), options)
        units[f"quickstart.{mode}"] = (QUICKSTART, [*tree, *options])
        units[f"only_includes.{mode}"] = (only, [*tree, *options])
    for name, text in COMPOSITIONS.items():
        units[f"{name}.compiled"] = (compiler.unit(name, text), [*tree, *MODES["compiled"], *COMPONENTS])
    units["only_includes.single_header"] = (only, single)
    units["quickstart.single_header"] = (QUICKSTART, single)
    units["bodies.single_header"] = (bodies, single)
    best = {}
    for _ in range(rounds):
        for name, (source, options) in units.items():
            seconds, mebibytes = compiler.measure(source, options)
            before = best.get(name, (seconds, mebibytes))
            best[name] = (min(seconds, before[0]), min(mebibytes, before[1]))
    return best


def rows_of(best, size):
    def row(name, ours, unit, peer, peer_name):
        ratio = round(ours / peer, 3) if peer else None
        goal = GOALS.get(name)
        return {"name": name, "ours": round(ours, 3), "unit": unit, "peer": round(peer, 3) if peer else None,
                "peer_name": peer_name, "ratio": ratio, "goal": f"ratio <= {goal:g}" if goal else None,
                "met": ratio <= goal if goal else None}

    rows = [row(f"compile_{mode}", best[f"quickstart.{mode}"][0], "s", best[f"baseline.{mode}"][0], "same Boost headers")
            for mode in MODES]
    rows += [row(f"compile_{name}", best[f"{name}.compiled"][0], "s", best["baseline.compiled"][0], "same Boost headers")
             for name in COMPOSITIONS]
    rows.append(row("single_header", best["only_includes.single_header"][0], "s", best["only_includes.header_only"][0],
                    "header-only mode, include only"))
    rows.append(row("single_header.memory", best["only_includes.single_header"][1], "MiB",
                    best["only_includes.header_only"][1], "header-only mode, include only"))
    rows.append(row("single_header.size", size / 1024, "KiB", None, None))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="compilations of each unit; the fastest counts")
    parser.add_argument("--compiler", default=os.environ.get("CXX", "g++"))
    parser.add_argument("--json", default=None, help="file for the rows, in the format of scripts/bench.sh")
    options = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory(prefix="nni-compile-") as folder:
            compiler = Compiler(options.compiler, pathlib.Path(folder))
            best = measure_all(compiler, options.rounds)
            size = (compiler.folder / "single" / "nni" / "nni.hpp").stat().st_size
    except Broken as broken:
        print(f"compile_budget: {broken}", file=sys.stderr)
        return 1
    print(f"{options.compiler} -O0, user seconds, best of {options.rounds}; load {os.getloadavg()[0]:.1f}\n")
    print(f"{'unit':30} {'seconds':>8} {'MiB':>6}")
    for name, (seconds, mebibytes) in best.items():
        print(f"{name:30} {seconds:8.2f} {mebibytes:6.0f}")
    print(f"\n{'row':22} {'ours':>8} {'peer':>8} unit {'ratio':>6}  goal          met")
    rows = rows_of(best, size)
    for row in rows:
        peer, ratio = (f"{value:.2f}" if value is not None else "-" for value in (row["peer"], row["ratio"]))
        met = {True: "yes", False: "no", None: "-"}[row["met"]]
        print(f"{row['name']:22} {row['ours']:8.2f} {peer:>8} {row['unit']:4} {ratio:>6}  {row['goal'] or '-':13} {met}")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(rows, indent=2) + "\n", encoding="ascii")
    return 0


if __name__ == "__main__":
    sys.exit(main())
