#!/usr/bin/env python3
"""Drives the demo's trip for real and in the simulator, and compares medians.

The real side is `pallas demo --scheme S`, several times, in turn over the schemes, so that a drift of the
machine hits all alike. The simulated side is `pallas sim` with the profile that a gNB of this machine
measured, the same vehicle, cells, links, prompt and token rate. Nothing is fitted.

Agreement, by handovers of all trips of a scheme: SIT and gap of two-front and pallas within 25 % or one decode
step of the real ones, of full-copy, recompute and ctho within 15 %. Exit status 1 when a median is outside.
"""

import argparse
import csv
import gzip
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCHEMES = ["two-front", "pallas", "ctho", "full-copy", "recompute"]
QUICK = {"two-front", "pallas"}  # hand over within a few steps
EXACT = {"two-front", "full-copy"}  # what `pallas demo` asks of these schemes
TRACE = ROOT / "data" / "sumo_grid_64ue_300s_2hz.csv.gz"
VEHICLE, BEGIN_S, END_S = "2", 98.0, 119.0  # the demo's own
GOODPUT_MBPS, TOKEN_RATE, REPORT_S = 50, 25, 0.1
SLOTS, CONTEXT = 3, 2048
TRIP_HANDOVERS = 3


def say(text):
    print(text, file=sys.stderr, flush=True)


def measured_engine(pallas):
    """What a gNB says of its engine, as `[engine] profile` takes it."""
    command = [pallas, "gnb", "--name=measured", "--http-listen=127.0.0.1:0", "--peer-listen=127.0.0.1:0",
               "--json", "--log-level=error", f"--slots={SLOTS}", f"--context-tokens={CONTEXT}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as gnb:
        try:
            line = gnb.stdout.readline()
            if not line:
                raise SystemExit("pallas gnb did not start; its message stands above")
            with urllib.request.urlopen(f"http://{json.loads(line)['http']}/v1/engine", timeout=10) as answer:
                return json.load(answer)
        finally:
            gnb.terminate()


def real_trip(pallas, scheme):
    done = subprocess.run([pallas, "demo", "--scheme", scheme, "--shadow", "off", "--json", "--log-level", "error"],
                          stdout=subprocess.PIPE, text=True, timeout=300, check=False)
    if done.returncode != 0:
        raise SystemExit(f"pallas demo --scheme {scheme} ended with {done.returncode}; its message stands above")
    report = json.loads(done.stdout)
    bad = [h["error"] for h in report["handovers"] if h["error"]]
    if len(report["handovers"]) != TRIP_HANDOVERS or bad:
        raise SystemExit(f"a trip under {scheme} had {len(report['handovers'])} handovers, errors {bad}")
    return report


def write_trajectory(path, standing_s):
    """The vehicle from BEGIN_S on; before, it stands at its first place while the prompt is computed."""
    with gzip.open(TRACE, "rt") as file:
        rows = [row for row in csv.DictReader(file, delimiter=";") if row["vehicle_id"] == VEHICLE]
    rows = [row for row in rows if BEGIN_S <= float(row["timestep_time"]) <= END_S]
    with open(path, "w", newline="") as file:
        out = csv.DictWriter(file, rows[0].keys(), delimiter=";")
        out.writeheader()
        out.writerow({**rows[0], "timestep_time": "0", "vehicle_speed": "0"})
        for row in rows:
            out.writerow({**row, "timestep_time": f"{float(row['timestep_time']) - BEGIN_S + standing_s:.3f}"})


def prefill_s(profile, tokens):
    """Time of a whole prompt by the profile's points, linear between them."""
    points = sorted((p["depth"], p["per_token_s"]) for p in profile["prefill"])
    total = 0.0
    for depth in range(tokens):
        if depth <= points[0][0]:
            total += points[0][1]
        elif depth >= points[-1][0]:
            total += points[-1][1]
        else:
            for (d0, c0), (d1, c1) in zip(points, points[1:]):
                if d0 <= depth <= d1:
                    total += c0 + (c1 - c0) * (depth - d0) / (d1 - d0)
                    break
    return total


def simulated_trips(pallas, scheme, engine, prompt_tokens, phases, folder):
    """Handovers of `phases` trips, which begin at different moments of the decoder's and reports' cycles."""
    profile = folder / "engine.json"
    profile.write_text(json.dumps(engine))
    standing = prefill_s(engine["profile"], prompt_tokens)
    handovers = []
    for phase in range(phases):
        standing_s = standing + 0.3 + REPORT_S * phase / phases
        write_trajectory(folder / "trip.csv", standing_s)
        duration = standing_s + END_S - BEGIN_S
        (folder / "trip.toml").write_text(f"""
name = "the demo's trip"
schemes = ["{scheme}"]
duration_s = {duration:.3f}
[cells]
size_m = 100
offset_x_m = -50
offset_y_m = 50
columns = 1
rows = 6
[engine]
profile = "engine.json"
[network]
mbps = {GOODPUT_MBPS}
first_estimate_mbps = {GOODPUT_MBPS}
control_latency_ms = 0.2
data_latency_ms = 0.2
[node]
t_max_s = 6
[session]
prompt_tokens = {prompt_tokens}
max_token_rate = {TOKEN_RATE}
consistency = "{'exact' if scheme in EXACT else 'fast'}"
[mobility]
trajectories = "trip.csv"
report_interval_s = {REPORT_S}
""")
        out = folder / "out"
        done = subprocess.run([pallas, "sim", "--scenario", str(folder / "trip.toml"), "--out", str(out)],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"pallas sim failed:\n{done.stderr}")
        with open(out / "handovers.json") as file:
            handovers += json.load(file)
    return handovers


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pallas", default=str(ROOT / "build/release/bin/pallas"), help="the program")
    parser.add_argument("--trips", type=int, default=7, help="real trips a scheme, of 3 handovers each (7)")
    parser.add_argument("--schemes", default=",".join(SCHEMES), help="comma-separated")
    parser.add_argument("--real", help="JSON of an earlier run: compare with its trips instead of driving")
    parser.add_argument("--report", help="write both sides there, JSON")
    arguments = parser.parse_args()
    schemes = arguments.schemes.split(",")
    if arguments.trips < 1 or not set(schemes) <= set(SCHEMES):
        parser.error(f"--trips from 1, --schemes of {','.join(SCHEMES)}")

    if arguments.real:
        result = json.loads(pathlib.Path(arguments.real).read_text())
    else:
        result = {"engine": measured_engine(arguments.pallas), "real": {scheme: [] for scheme in schemes}}
        for trip in range(arguments.trips):
            for scheme in schemes:
                say(f"trip {trip + 1} of {arguments.trips}: {scheme}")
                result["real"][scheme].append(real_trip(arguments.pallas, scheme))

        if arguments.report:  # the trips took long: keep them whatever comes
            pathlib.Path(arguments.report).write_text(json.dumps(result) + "\n")

    result["simulated"], outside = {}, []
    print(f"{'scheme':10} {'':4} {'real ms':>9} {'simulated':>9} {'ratio':>6}  of handovers")
    with tempfile.TemporaryDirectory() as folder:
        for scheme in schemes:
            trips = result["real"][scheme]
            prompt = trips[0]["prompt_tokens"]
            simulated = simulated_trips(arguments.pallas, scheme, result["engine"], prompt, len(trips),
                                        pathlib.Path(folder))
            result["simulated"][scheme] = simulated
            real = [h for trip in trips for h in trip["handovers"]]
            step = statistics.median(trip["step_ms"]["p50"] for trip in trips)
            for metric in ("sit_ms", "gap_ms"):
                a = statistics.median(h[metric] for h in real)
                b = statistics.median(h[metric] for h in simulated)
                good = abs(b - a) <= (max(0.25 * a, step) if scheme in QUICK else 0.15 * a)
                if not good:
                    outside.append(f"{scheme} {metric}")
                print(f"{scheme:10} {metric[:3]:4} {a:9.1f} {b:9.1f} {b / a:6.2f}  {len(real)} and {len(simulated)}"
                      f"{'' if good else '  OUTSIDE'}", flush=True)
    if arguments.report:
        pathlib.Path(arguments.report).write_text(json.dumps(result, indent=1) + "\n")
    if outside:
        say("outside the agreement: " + ", ".join(outside))
    return 1 if outside else 0


if __name__ == "__main__":
    sys.exit(main())
