#include "http_feed.h"

#include "http/json_writer.h"

namespace pallas::app {
namespace {

constexpr const char* kPositions = "/v1/positions";
constexpr const char* kPredictions = "/v1/predictions";
constexpr const char* kHandovers = "/v1/handovers";
constexpr int kTries = 3;  // of a handover's event
constexpr int kStaleNumber = 409;

}  // namespace

std::string to_json(const mobility::PositionReport& report) {
  http::JsonWriter json;
  json.begin_object()
      .member("ue", report.ue.value)
      .member("seq", report.seq)
      .member("t_ms", report.t_ms)
      .member("x", report.x_m)
      .member("y", report.y_m);
  if (report.speed_mps) json.member("speed", *report.speed_mps);
  if (report.heading_deg) json.member("heading", *report.heading_deg);
  return json.end_object().take();
}

std::string to_json(const mobility::Prediction& prediction) {
  http::JsonWriter json;
  json.begin_object()
      .member("ue", prediction.ue.value)
      .member("seq", prediction.seq)
      .member("serving", prediction.serving.value);
  json.key("target");
  if (prediction.target) {
    json.value(prediction.target->value);
  } else {
    json.null();
  }
  json.member("in_ms", to_ms(prediction.in)).member("valid_ms", to_ms(prediction.valid));
  if (prediction.sigma) json.member("sigma_ms", to_ms(*prediction.sigma));
  if (prediction.confidence) json.member("confidence", *prediction.confidence * 100);
  if (prediction.oracle) json.member("oracle", true);
  return json.end_object().take();
}

std::string to_json(const mobility::HandoverEvent& event) {
  http::JsonWriter json;
  json.begin_object()
      .member("ue", event.ue.value)
      .member("seq", event.seq)
      .member("phase", mobility::to_string(event.phase))
      .member("source", event.source.value)
      .member("target", event.target.value);
  return json.end_object().take();
}

HttpFeed::HttpFeed(boost::asio::io_context& io, const std::map<NodeId, ue::Address>& gnbs,
                   std::optional<ue::Address> ue_endpoint, ue::HttpAccess access)
    : client_(io, ue::HttpTimeouts{}, std::move(access)), ue_client_(io, ue::HttpTimeouts{}) {
  for (const auto& [name, at] : gnbs) gnbs_.emplace(name, Queue{name.value, at, &client_});
  if (ue_endpoint) ue_ = Queue{"the UE", *ue_endpoint, &ue_client_};
}

void HttpFeed::post(Queue& queue, const char* path, std::string body, bool newest_only) {
  // Of positions that wait for a slow gNB only the latest is of any use.
  if (newest_only) {
    std::erase_if(queue.waiting, [&](const Queue::Entry& e) { return e.newest_only; });
  }
  queue.waiting.push_back({path, std::move(body), newest_only});
  if (!queue.busy) next(queue);
}

void HttpFeed::next(Queue& queue) {
  if (queue.waiting.empty()) return;
  auto entry = std::move(queue.waiting.front());
  queue.waiting.pop_front();
  queue.busy = true;
  const ue::HttpRequest request{"POST", entry.path, {}, entry.body};
  queue.client->fetch(queue.at, request, [this, &queue, entry](Result<ue::HttpReply> answer) {
    queue.busy = false;
    // That a UE has left stays true. Should it have been heard before, its number shows that.
    const bool again = !answer && !entry.newest_only && entry.tries + 1 < kTries;
    const bool heard = answer && (answer->status / 100 == 2 ||
                                  (entry.tries > 0 && answer->status == kStaleNumber));
    if (again) {
      queue.waiting.push_front(entry);
      ++queue.waiting.front().tries;
    } else if (!heard && failures_.count++ == 0) {
      failures_.first = std::string(entry.path) + " at " + queue.who + ": " +
                        (answer ? "HTTP " + std::to_string(answer->status) + " " + answer->body
                                : answer.error().message);
    }
    next(queue);
  });
}

void HttpFeed::position(const NodeId& gnb, const mobility::PositionReport& report) {
  post(gnbs_.at(gnb), kPositions, to_json(report), true);
}

void HttpFeed::prediction(const NodeId& gnb, const mobility::Prediction& prediction) {
  post(gnbs_.at(gnb), kPredictions, to_json(prediction), true);
}

void HttpFeed::handover(const NodeId& gnb, const mobility::HandoverEvent& event) {
  post(gnbs_.at(gnb), kHandovers, to_json(event), false);
}

void HttpFeed::ue_handover(const NodeId&, const mobility::HandoverEvent& event) {
  if (ue_) post(*ue_, kHandovers, to_json(event), false);
}

}  // namespace pallas::app
