// libFuzzer target over what clients send: OpenAI bodies and the UE's attach. The first byte says
// which; what is accepted must be what the node may rely on.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "engine/fake_text.h"
#include "http/request_parser.h"

namespace {

using namespace pallas;

constexpr TokenPosition kContext = 512;

void require(bool holds) {
  if (!holds) std::abort();
}

void check_params(const wire::SessionParams& params) {
  require(params.max_tokens >= params.min_tokens);
  require(params.temperature >= 0 && params.top_p >= 0 && params.top_p <= 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  static const engine::FakeTextCodec text;
  http::ParserContext context;
  context.text = &text;
  context.model = "fake";
  context.context_tokens = kContext;
  context.random = [] { return std::uint64_t{7}; };
  const std::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 4 == 3) {
    http::parse_event_id(body);
  } else if (data[0] % 4 == 2) {
    wire::Compatibility ours;
    const SessionId session(std::string(32, 'a'));
    wire::SessionSnapshot known;
    known.prompt_tokens = 8;
    known.params.max_tokens = 16;
    if (const auto attach = http::parse_attach(body, session, "secret", ours, context, &known);
        attach && attach->context) {
      require(attach->context->prompt.empty() && attach->context->generated.size() <= 16);
    }
    const auto attach = http::parse_attach(body, session, "secret", ours, context);
    if (!attach) return 0;
    require(attach->session == session && attach->resume_token == "secret");
    if (!attach->context) return 0;
    check_params(attach->context->params);
    require(!attach->context->prompt.empty());
    require(attach->context->prompt.size() + attach->context->generated.size() <= kContext);
  } else {
    const auto endpoint = data[0] % 4 == 0 ? http::Endpoint::kChat : http::Endpoint::kCompletions;
    const auto request = http::parse_request(endpoint, body, context);
    if (!request) return 0;
    check_params(request->open.params);
    require(!request->open.prompt.empty() && request->open.prompt.size() < kContext);
    require(http::is_session_id(request->open.session.value));
  }
  return 0;
}
