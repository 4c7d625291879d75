#pragma once

#include <string>

namespace pallas::app {

// What the demo's user asks: a briefing for a drive, and a question about it. 600 to 1,000 tokens
// with the chat template of the demo's model.
std::string demo_prompt();

}  // namespace pallas::app
