#pragma once
// One HTTP exchange as the routes see it: no sockets, no library types.

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pallas::http {

struct HttpRequest {
  std::string method;  // as sent: "GET", "POST", ...
  std::string path;    // percent-decoded, without the query
  std::string query;   // as sent, without '?'
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;

  // First header of that name, in any case; none when absent.
  std::optional<std::string_view> header(std::string_view name) const;
  // Value of a query parameter, percent-decoded; none when absent.
  std::optional<std::string> parameter(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;  // besides those of every response
};

std::string_view reason_phrase(int status);
// %41 becomes 'A'; a '%' without two hex digits stays as it is.
std::string percent_decode(std::string_view text);

// Where the answer to one request goes: either respond() once, or begin_events(), any number of
// write(), and end(). Implemented by a connection; calls after its end have no effect. None of them
// calls back into the routes or the node before it returns.
class Responder {
 public:
  virtual ~Responder() = default;
  virtual void respond(HttpResponse response) = 0;
  virtual void begin_events() = 0;                  // 200, text/event-stream
  virtual void write(std::string_view events) = 0;  // leaves at once
  virtual void end() = 0;
};

}  // namespace pallas::http
