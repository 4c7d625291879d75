# Shared by the scripts beside it: sourced, never run.
# shellcheck shell=bash

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
third_party=$root/build/third_party

say() { printf '== %s\n' "$*"; }
die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

jobs() { printf '%s\n' "${PALLAS_JOBS:-$(nproc)}"; }

# One object file is enough work for a compiler; a cache is used where the machine has one.
# The sloppiness lets it serve sources that are compiled with a precompiled header.
launcher_flags=()
if command -v ccache >/dev/null; then
  launcher_flags=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  export CCACHE_SLOPPINESS=${CCACHE_SLOPPINESS:-pch_defines,time_macros,include_file_mtime,include_file_ctime}
fi

# configure PRESET: only when that build folder has not been configured to the end; ninja notices
# later changes of the CMake files by itself.
configure() {
  [ -f "$root/build/$1/build.ninja" ] && return
  say "configuring build/$1"
  (cd "$root" && cmake --preset "$1" "${launcher_flags[@]}" >"$(log_file "configure-$1")" 2>&1) || {
    cat "$(log_file "configure-$1")" >&2
    die "cmake could not configure the preset $1"
  }
}

# build PRESET TARGET...: quiet when there is nothing to do.
build() {
  local preset=$1
  shift
  NINJA_STATUS='[%f/%t %es] ' cmake --build "$root/build/$preset" -j "$(jobs)" --target "$@"
}

log_file() {
  mkdir -p "$root/build/logs"
  printf '%s\n' "$root/build/logs/$1.log"
}
