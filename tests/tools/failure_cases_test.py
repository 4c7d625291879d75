"""docs/failure-cases.md has all 36 cases, and each test that it names exists in the file that it names."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/failure-cases.md").read_text(encoding="utf-8")
CASE = re.compile(r"^\| (\d+) \| ([^|]+) \| (.+) \|$", re.MULTILINE)
# `file: test`, or `test` of the file named last.
NAMED = re.compile(r"`(?:(tests/[\w/.]+): )?(\w+)`")


class FailureCases(unittest.TestCase):
    def test_every_case_is_there_once(self):
        self.assertEqual([int(number) for number, _, _ in CASE.findall(PAGE)], list(range(1, 37)))

    def test_every_named_test_exists(self):
        missing, named = [], 0
        for number, _, text in CASE.findall(PAGE):
            file = None
            for path, test in NAMED.findall(text):
                file = path or file
                if not path and (file is None or len(test) < 20):
                    continue  # a setting, a field or a fuzz target
                named += 1
                source = ROOT / file
                code = source.read_text(encoding="utf-8") if source.is_file() else ""
                if not re.search(rf"(?:TEST(?:_F|_P)?\(\s*\w+,\s*|def ){test}\b", code):
                    missing.append(f"case {number}: {file}: {test}")
        self.assertEqual(missing, [])
        self.assertGreater(named, 60)


if __name__ == "__main__":
    unittest.main()
