"""tools/check_layers on small made-up trees: each kind of breach is found, with its file and line."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "tools" / "check_layers"
LAYERS = """\
# a comment
base:
wire: base
engine_llama: base
net: base wire
apps: *
pure: base wire
heavy_headers: net/stream.h
"""


class CheckLayers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.write("src/layers.txt", LAYERS)
        self.write("src/net/stream.h", '#include <boost/asio/ip/tcp.hpp>\n')

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def run_it(self):
        return subprocess.run([sys.executable, SCRIPT, self.root], capture_output=True, text=True)

    def assert_breach(self, words):
        result = self.run_it()
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertIn(words, result.stderr)

    def test_allowed_includes_pass(self):
        self.write("src/wire/a.cpp", '#include "wire/a.h"\n#include "base/b.h"\n#include <nlohmann/json.hpp>\n')
        self.write("apps/pallas/main.cpp", '#include "net/stream.h"\n#include "demo.h"\n')
        self.write("src/engine_llama/a.cpp", '#include "llama.h"\n#include "llama-kv-cache.h"\n')
        result = self.run_it()
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_an_include_against_the_direction_names_file_and_line(self):
        self.write("src/base/a.cpp", '#include "base/a.h"\n\n#include "wire/a.h"\n')
        self.assert_breach("src/base/a.cpp:3: base may not include wire")

    def test_a_pure_module_may_not_use_threads_or_asio(self):
        for header in ("thread", "mutex", "boost/asio.hpp", "asio.hpp"):
            with self.subTest(header):
                self.write("src/wire/a.cpp", f"#include <{header}>\n")
                self.assert_breach("src/wire/a.cpp:1: wire is pure")

    def test_llama_headers_stay_in_their_module(self):
        self.write("src/net/a.cpp", "#include <llama.h>\n")
        self.assert_breach("src/net/a.cpp:1: only engine_llama may include llama.h")

    def test_llama_internals_stay_in_one_file(self):
        self.write("src/engine_llama/a.cpp", '#include "llama-kv-cache.h"\n')
        self.write("src/engine_llama/b.cpp", '#include "llama-io.h"\n')
        self.assert_breach("src/engine_llama/b.cpp:1: llama.cpp's internal headers belong in one file")

    def test_a_heavy_header_in_a_header_needs_a_permit(self):
        self.write("src/net/other.h", "#include <nlohmann/json.hpp>\n")
        self.assert_breach("src/net/other.h:1: <nlohmann/json.hpp> is heavy")

    def test_a_module_without_a_line_is_named(self):
        self.write("src/new/a.h", "\n")
        self.assert_breach("src/new/a.h:1: new has no line")

    def test_a_circle_in_layers_is_named(self):
        self.write("src/layers.txt", "a: b\nb: a\n")
        self.assert_breach("circle: a -> b -> a")


if __name__ == "__main__":
    unittest.main()
