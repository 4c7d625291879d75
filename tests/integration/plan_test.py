"""`pallas plan`: what it answers, and what it refuses."""

import json
import os
import tempfile
import unittest

from support import run


class Answers(unittest.TestCase):
    def test_json_has_every_scheme_with_its_figures(self):
        status, out, err = run("plan", "--json")
        self.assertEqual(status, 0, err)
        plans = json.loads(out)
        self.assertEqual(
            [plan["scheme"] for plan in plans],
            ["detour", "full-copy", "recompute", "ctho", "partial", "pallas", "pallas-no-rc", "pallas-no-sm", "two-front"],
        )
        for plan in plans:
            more = {"fraction", "break_even_mbps"} if plan["scheme"] == "partial" else set()
            self.assertEqual(
                set(plan), {"scheme", "window_s", "split_tokens", "sit_s", "early_s", "bytes", "trigger_now"} | more
            )

    def test_partial_tells_the_goodput_below_which_ctho_is_faster(self):
        args = ["--kv-bytes-per-token=23040", "--prefill-rate=270", "--decode-rate=25", "--remaining=0"]
        status, out, err = run("plan", *args, "--scheme=partial")
        self.assertEqual(status, 0, err)
        self.assertIn("ctHO interrupts for less below 33.2 Mbps", out)
        by_goodput = {}
        for mbps in (30, 37):
            plans = json.loads(run("plan", *args, f"--goodput-mbps={mbps}", "--json")[1])
            by_goodput[mbps] = {plan["scheme"]: plan["sit_s"] for plan in plans}
        self.assertGreater(by_goodput[30]["partial"], by_goodput[30]["ctho"])
        self.assertLess(by_goodput[37]["partial"], by_goodput[37]["ctho"])

    def test_the_papers_window_comes_out(self):
        args = ["--context=3000", "--prefill-rate=1848.4", "--decode-rate=0", "--activation=0.22757", "--scheme=pallas"]
        status, out, err = run("plan", *args, "--json")
        self.assertEqual(status, 0, err)
        (plan,) = json.loads(out)
        self.assertAlmostEqual(plan["window_s"], 1.623, 3)
        self.assertAlmostEqual(plan["sit_s"], 0.22757, 9)
        self.assertFalse(plan["trigger_now"])

    def test_the_table_names_the_model_and_the_schemes(self):
        status, out, err = run("plan", "--model-shape=qwen3-32b", "--sigma=0.5")
        self.assertEqual(status, 0, err)
        for word in ("qwen3-32b", "262144 bytes", "standard deviation 0.5 s", "two-front"):
            self.assertIn(word, out)

    def test_an_uncertain_prediction_is_prepared_for_earlier(self):
        def window(*args):
            return json.loads(run("plan", "--scheme=pallas", "--json", *args)[1])[0]["window_s"]

        self.assertGreater(window("--sigma=0.5"), window() + 0.3)
        self.assertEqual(window("--sigma=0.5", "--confidence=0.1"), 0)

    def test_the_plot_is_an_svg(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "window's curve.svg")
            status, _, err = run("plan", "--plot", path)
            self.assertEqual(status, 0, err)
            with open(path, encoding="utf-8") as svg:
                self.assertIn("<svg", svg.read())


class Refusals(unittest.TestCase):
    def test_every_bad_value_is_refused_by_its_flag(self):
        for flag, values in {
            "--context": ("-1", "many", "nan"),
            "--prefill-rate": ("0", "-3", "nan", "inf", "fast"),
            "--decode-rate": ("-3", "nan"),
            "--goodput-mbps": ("0", "-3", "nan", "inf"),
            "--kv-bytes-per-token": ("0", "-1", "1.5"),
            "--model-shape": ("gpt-17", "/dev/null"),
            "--remaining": ("-1", "nan"),
            "--alpha": ("-0.1", "1.1", "nan"),
            "--step": ("0", "-1", "nan", "9"),
            "--t-max": ("0", "nan"),
            "--activation": ("-1", "nan"),
            "--load": ("-1", "nan"),
            "--sigma": ("-1", "nan"),
            "--confidence": ("-0.1", "2", "nan"),
            "--partial-fraction": ("0", "1.1", "nan"),
            "--scheme": ("teleport", ""),
            "--plot": ("window.pdf",),
        }.items():
            for value in values:
                status, out, err = run("plan", f"{flag}={value}")
                self.assertEqual(status, 2, f"{flag}={value}: {out}{err}")
                self.assertIn(flag, err)

    def test_contradictions_are_refused(self):
        for args in (
            ["--kv-bytes-per-token=1000", "--model-shape=qwen3-14b"],
            ["--plot=x.svg", "--scheme=detour"],
            ["--scheme=pallas", "--scheme=pallas"],
            ["--kv-bytes-per-token=1000"],
        ):
            status, out, err = run("plan", *args)
            self.assertEqual(status, 2, out + err)
            self.assertIn("--", err)

    def test_a_plot_that_cannot_be_written_is_said(self):
        status, _, err = run("plan", "--plot=/nonexistent/x.svg")
        self.assertEqual(status, 1)
        self.assertIn("--plot", err)


if __name__ == "__main__":
    unittest.main()
