// The operator's orders: routes that change what a gNB does.

#include <algorithm>

#include "http/api.h"
#include "http/orders.h"

namespace pallas::http {
namespace {

HttpResponse json_response(int status, std::string body) {
  HttpResponse response;
  response.status = status;
  response.body = std::move(body);
  return response;
}

ApiError not_supported() {
  return {501, "This program does not drain.", "", "unsupported", std::nullopt};
}

}  // namespace

Api::Answer Api::move(const Call& call) {
  if (!is_session_id(call.captured)) return refuse(call, to_api_error({Errc::kNotFound, ""}));
  const auto order = parse_move(call.request.body, SessionId(call.captured));
  if (!order) return refuse(call, order.error());
  const auto ordered = backend_->move(*order);
  if (!ordered) {
    auto error = to_api_error(ordered.error());
    // The gNB that was asked works; where the order leads to does not.
    if (ordered.error().code == Errc::kUnreachable) error.status = 409;
    return refuse(call, error);
  }
  auto response = json_response(order->dry_run ? 200 : 202, move_json(*ordered, options_.anchor()));
  if (!order->dry_run) response.headers.emplace_back("Location", "/v1/handovers/" + ordered->id);
  call.responder.respond(std::move(response));
  return std::nullopt;
}

Api::Answer Api::one_handover(const Call& call) {
  const std::string& id = call.captured;
  if (const auto move = backend_->moved(id)) {
    call.responder.respond(json_response(200, move_json(*move, options_.anchor())));
    return std::nullopt;
  }
  const auto newest = [&](const auto& reports) {
    const auto found = std::find_if(reports.rbegin(), reports.rend(),
                                    [&](const auto& report) { return report.id == id; });
    return found == reports.rend() ? nullptr : &*found;
  };
  const auto* arrival = newest(backend_->handovers());
  const auto* departure = newest(backend_->departures());
  if (arrival == nullptr && departure == nullptr) {
    return refuse(call, {404, "No such handover here, or it is long over.", "", "not_found", {}});
  }
  call.responder.respond(
      json_response(200, found_handover_json(id, arrival, departure, options_.anchor())));
  return std::nullopt;
}

Api::Answer Api::drain(const Call& call) {
  if (!drain_.order) return refuse(call, not_supported());
  const auto order = parse_drain(call.request.body);
  if (!order) return refuse(call, order.error());
  if (const auto begun = drain_.order(*order); !begun) {
    return refuse(call, to_api_error(begun.error()));
  }
  call.responder.respond(
      json_response(202, drain_json(backend_->drain_status(), drain_.ends_in())));
  return std::nullopt;
}

Api::Answer Api::draining(const Call& call) {
  if (!drain_.order) return refuse(call, not_supported());
  call.responder.respond(
      json_response(200, drain_json(backend_->drain_status(), drain_.ends_in())));
  return std::nullopt;
}

}  // namespace pallas::http
