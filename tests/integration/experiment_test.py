"""`pallas experiment`: what it prints, what it writes, and what it refuses."""

import json
import os
import subprocess
import tempfile
import unittest

from support import PALLAS, run


class Experiment(unittest.TestCase):
    def refused(self, args, *words):
        status, out, err = run("experiment", *args)
        self.assertEqual(status, 2, out + err)
        for word in words:
            self.assertIn(word, err)

    def test_the_list_has_every_experiment(self):
        status, out, _ = run("experiment", "list")
        self.assertEqual(status, 0)
        for name in ("figure1", "table2", "impactho", "two-front", "uncertainty", "scale"):
            self.assertRegex(out, rf"(?m)^{name} ")

    def test_rows_are_json_and_nothing_is_written_unasked(self):
        with tempfile.TemporaryDirectory() as folder:
            here = os.getcwd()
            os.chdir(folder)
            self.addCleanup(os.chdir, here)
            status, out, err = run("experiment", "table1", "--quick", "--json")
            self.assertEqual(status, 0, err)
            self.assertEqual(os.listdir(folder), [])
        rows = {row["quantity"]: row for row in json.loads(out)}
        row = rows["table1/full-copy/sit_avg_ms/1k"]
        self.assertEqual(row["paper"], 7165)
        self.assertAlmostEqual(row["ratio"], row["ours"] / row["paper"])

    def test_files_are_the_same_for_the_same_seed(self):
        with tempfile.TemporaryDirectory() as folder:
            contents = []
            for name in ("a", "b"):
                out_folder = os.path.join(folder, name)
                status, out, err = run("experiment", "table3", "--quick", "--seed=5", f"--out={out_folder}")
                self.assertEqual(status, 0, err)
                self.assertIn("Parameters", out)
                contents.append({})
                for file in sorted(os.listdir(out_folder)):
                    with open(os.path.join(out_folder, file), "rb") as opened:
                        contents[-1][file] = opened.read()
            self.assertIn("table3.csv", contents[0])
            self.assertIn("table3.json", contents[0])
            self.assertEqual(contents[0], contents[1])

    def test_without_gnuplot_the_rows_are_written_and_a_sentence_says_what_to_install(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.environ.get("PATH", "")
            program = os.path.abspath(PALLAS)
            os.environ["PATH"] = folder
            self.addCleanup(os.environ.__setitem__, "PATH", path)
            done = subprocess.run(
                [program, "experiment", "table1", "--quick", f"--out={folder}"], capture_output=True, text=True, timeout=60
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("gnuplot-nox", done.stderr)
            self.assertIn("table1.csv", os.listdir(folder))

    def test_bad_input_is_refused_by_name(self):
        self.refused(["table9"], "'table9'", "table1", "scale")
        self.refused(["table1", "--seed=-1"], "seed", "-1")
        self.refused(["table1", "--seed=many"], "seed", "many")
        self.refused(["table3", "--trace=/nonexistent.csv"], "/nonexistent.csv")
        self.refused(["table1", "--trace=/nonexistent.csv"], "trace", "table1")
        self.refused(["all", "--trace=/nonexistent.csv"], "trace")
        self.refused([], "name")
        with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
            file.write("time,car\n")
            file.flush()
            self.refused(["table3", f"--trace={file.name}"], file.name, "line 1")


if __name__ == "__main__":
    unittest.main()
