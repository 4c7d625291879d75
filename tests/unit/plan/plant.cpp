#include "plant.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "kv/token_range.h"

namespace pallas::plan {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

class Plant {
 public:
  explicit Plant(const PlantSetup& setup) : s_(setup), n_(setup.context) {}

  PlantResult run() {
    if (s_.decode > 0) token_at_ = 1 / s_.decode;
    while (true) {
      if (!handed_over_ && now_ >= s_.window) hand_over();
      if (handed_over_ && now_ >= s_.load && covered_.covers({0, n_})) break;
      start_link();
      start_target();
      const double next =
          std::min({link_until_, target_until_, handed_over_ ? kNever : token_at_,
                    handed_over_ ? kNever : s_.window, now_ < s_.load ? s_.load : kNever});
      if (next == kNever) {
        result_.complete = false;
        break;
      }
      now_ = next;
      if (now_ == link_until_) finish_link();
      if (now_ == target_until_) finish_target();
      if (!handed_over_ && now_ == token_at_) {
        ++n_;
        ++steps_;
        token_at_ = (steps_ + 1) / s_.decode;
      }
    }
    result_.sit = now_ - s_.window;
    result_.tokens = n_;
    return result_;
  }

 private:
  void hand_over() {
    handed_over_ = true;
    result_.uncovered = n_ - covered_.total();
  }

  void start_link() {
    if (link_until_ != kNever || !(s_.link > 0)) return;
    const auto range = to_send();
    if (!range) return;
    on_link_ = *range;
    link_until_ = now_ + range->size() / s_.link;
    sent_.add(*range);
    result_.sent += range->size();
  }

  std::optional<kv::TokenRange> to_send() const {
    if (s_.plan.order == kv::SendOrder::kNothing) return std::nullopt;
    const TokenPosition complete = n_ / s_.block * s_.block;
    const TokenPosition begin = std::max(s_.plan.send_begin, s_.plan.meet ? front_ : 0);
    const TokenPosition end = handed_over_ ? n_ : complete;
    if (const auto block = pick({begin, end})) return block;
    return s_.plan.partial_ranges ? pick({begin, n_}) : std::nullopt;
  }

  // At most a block of what was not sent yet, at its end or its beginning.
  std::optional<kv::TokenRange> pick(kv::TokenRange from) const {
    if (s_.plan.order == kv::SendOrder::kHighestFirst) {
      const auto run = sent_.highest_missing(from);
      if (!run) return std::nullopt;
      return kv::TokenRange{std::max(run->begin, (run->end - 1) / s_.block * s_.block), run->end};
    }
    const auto run = sent_.lowest_missing(from);
    if (!run) return std::nullopt;
    return kv::TokenRange{run->begin, std::min(run->end, (run->begin / s_.block + 1) * s_.block)};
  }

  void finish_link() {
    link_until_ = kNever;
    covered_.add(on_link_);
  }

  void start_target() {
    if (target_until_ != kNever || now_ < s_.load) return;
    const auto run = covered_.lowest_missing({0, std::min(n_, s_.plan.recompute_end)});
    if (!run) return;
    at_target_ = {run->begin, std::min(run->end, run->begin + s_.chunk)};
    target_until_ = now_ + at_target_.size() / s_.prefill;
  }

  void finish_target() {
    target_until_ = kNever;
    covered_.add(at_target_);
    result_.recomputed += at_target_.size();
    const auto hole = covered_.lowest_missing({0, n_});
    front_ = hole ? hole->begin : n_;
  }

  const PlantSetup& s_;
  double now_ = 0;
  TokenPosition n_;
  TokenPosition steps_ = 0;
  double token_at_ = kNever;
  bool handed_over_ = false;
  kv::Coverage covered_, sent_;
  TokenPosition front_ = 0;
  kv::TokenRange on_link_, at_target_;
  double link_until_ = kNever, target_until_ = kNever;
  PlantResult result_;
};

}  // namespace

PlantResult run_plant(const PlantSetup& setup) {
  return Plant(setup).run();
}

}  // namespace pallas::plan
