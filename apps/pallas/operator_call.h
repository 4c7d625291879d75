#pragma once
// One request of an operator to a gNB, for commands that do one thing after another.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.h"
#include "event_loop.h"
#include "ue/gnb_client.h"

namespace pallas::app {

class OperatorCall {
 public:
  // `at`: "HOST:PORT" or a URL. kInvalidArgument names what is wrong.
  static Result<OperatorCall> to(EventLoop& loop, const std::string& at, const std::string& gnb_ca,
                                 const std::string& key_file);

  // The answer's JSON where the status is 2xx; else an error with the gNB's own words. kUnreachable
  // when there is nobody, kTimeout after ten seconds, kCancelled when interrupted.
  Result<nlohmann::json> operator()(const std::string& method, const std::string& target,
                                    const std::string& body = "") const;

 private:
  OperatorCall(EventLoop& loop, ue::Address at, ue::HttpAccess access)
      : loop_(&loop), at_(std::move(at)), access_(std::move(access)) {}
  EventLoop* loop_;
  ue::Address at_;
  ue::HttpAccess access_;
};

}  // namespace pallas::app
