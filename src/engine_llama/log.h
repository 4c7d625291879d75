#pragma once
// llama.cpp writes through one callback for the whole process. Here it stays silent; its errors are
// kept per thread, so that a failure can be reported in its own words.

#include <string>

namespace pallas::engine {

// Starts llama.cpp's backend and silences it, once a process. Any thread.
void start_backend();

// What llama.cpp complained about on this thread since the last call, on one line; empty if
// nothing.
std::string take_backend_errors();

}  // namespace pallas::engine
