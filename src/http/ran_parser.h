#pragma once
// The three objects of the RAN feed (docs/ran-feed.md), validated into native types. Whether a cell
// exists and whether a `seq` is new is the node's to say.

#include <string_view>
#include <tl/expected.hpp>

#include "http/api_error.h"
#include "mobility/ran_events.h"

namespace pallas::http {

template <class T>
using RanResult = tl::expected<T, Problem>;

// 400: no JSON object, a member missing or of a wrong type. 422: a value that cannot be.
RanResult<mobility::Prediction> parse_prediction(std::string_view json);
RanResult<mobility::HandoverEvent> parse_handover(std::string_view json);
RanResult<mobility::PositionReport> parse_position(std::string_view json);

// What the node said against an object that parsed well: 409 for an older seq, 422 for an unknown
// cell or UE, with the field where the node's message starts with or quotes its name.
Problem ran_problem(const Error& error);

}  // namespace pallas::http
