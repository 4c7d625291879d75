"""The demo without a model, judged by its report."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

from support import ROOT, run


class Demo(unittest.TestCase):
    def demo(self, *flags):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "report.json")
            status, out, err = run("demo", "--engine=fake", "--plain", f"--report={path}", *flags, timeout=400)
            self.assertTrue(os.path.exists(path), out + err)
            with open(path) as file:
                report = json.load(file)
            judged = subprocess.run(
                [sys.executable, os.path.join(ROOT, "tools", "judge_demo"), "--lenient-timing", path],
                capture_output=True,
                text=True,
            )
        return status, out + err, report, judged

    def test_three_handovers_leave_the_text_as_it_would_have_been(self):
        status, text, report, judged = self.demo()
        self.assertEqual(status, 0, text)
        self.assertEqual(judged.returncode, 0, judged.stdout + judged.stderr)
        self.assertTrue(report["text_identical"])
        self.assertEqual(report["faults"], [])
        self.assertEqual(len(report["handovers"]), 3)
        self.assertFalse(report["oracle"])
        for handover in report["handovers"]:
            self.assertTrue(handover["prepared"] and handover["exact"], handover)
            self.assertGreater(handover["window_s"], 0)

    def test_an_oracle_is_told_apart(self):
        status, text, report, _ = self.demo("--oracle", "--to=106")
        self.assertEqual(status, 0, text)
        self.assertTrue(report["oracle"])
        self.assertEqual(len(report["handovers"]), 1)


if __name__ == "__main__":
    unittest.main()
