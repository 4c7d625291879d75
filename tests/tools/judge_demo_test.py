"""tools/judge_demo on made-up reports: each broken promise fails and is named."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "tools" / "judge_demo"
HANDOVER = {"scheme": "two-front", "source": "a", "target": "b", "prepared": True, "exact": True,
            "gap_ms": 41.0, "sit_ms": 12.5, "window_s": 1.2, "early_s": 0.4, "tokens_recomputed": 600,
            "tokens_replayed": 0, "bytes": 4000000}
GOOD = {"text_identical": True, "tokens": 500, "itl_ms": {"p50": 40.0, "p95": 43.0}, "step_ms": {"p50": 10.0},
        "handovers": [HANDOVER] * 3}


class JudgeDemo(unittest.TestCase):
    def judge(self, change, *options):
        report = json.loads(json.dumps(GOOD))
        change(report)
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(report, file)
            file.flush()
            return subprocess.run([sys.executable, SCRIPT, *options, file.name], capture_output=True, text=True)

    def assert_bad(self, change, words, *options):
        result = self.judge(change, *options)
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertIn(words, result.stderr)

    def test_a_good_report_passes(self):
        result = self.judge(lambda report: None)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("median gap 41.0 ms, limit 60.0 ms", result.stdout)

    def test_text_that_differs_fails(self):
        self.assert_bad(lambda report: report.update(text_identical=False), "text_identical is false")

    def test_too_few_handovers_fail(self):
        self.assert_bad(lambda report: report["handovers"].pop(), "2 handovers, wanted at least 3")

    def test_an_unprepared_or_inexact_handover_fails(self):
        self.assert_bad(lambda report: report["handovers"][1].update(prepared=False), "handover 2 (a -> b) was not prepared")
        self.assert_bad(lambda report: report["handovers"][2].update(exact=False), "handover 3 (a -> b) was not exact")

    def test_long_gaps_fail_unless_timing_is_lenient(self):
        def slow(report):
            report["handovers"][0]["gap_ms"] = 91.0

        self.assert_bad(slow, "longest gap 91.0 ms, limit 90.0 ms")
        self.assertEqual(self.judge(slow, "--lenient-timing").returncode, 0)

    def test_a_slow_median_fails(self):
        def slow(report):
            for handover in report["handovers"]:
                handover["gap_ms"] = 61.0

        self.assert_bad(slow, "median gap 61.0 ms, limit 60.0 ms")

    def test_a_missing_field_or_a_wrong_type_is_named(self):
        self.assert_bad(lambda report: report["handovers"][0].pop("gap_ms"), "no field gap_ms")
        self.assert_bad(lambda report: report["step_ms"].update(p50="x"), "step_ms.p50 is 'x', not a number")
        self.assert_bad(lambda report: report.update(tokens=True), "tokens is True")


if __name__ == "__main__":
    unittest.main()
