#include "plan/clairvoyant.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace pallas::plan {
namespace {

class Schedule {
 public:
  Schedule(const std::vector<ScheduledTransfer>& transfers, double budget)
      : transfers_(transfers), budget_(budget), fraction_(transfers.size(), 0.0) {
    std::size_t slots = 0;
    for (const auto& t : transfers) slots = std::max(slots, t.end);
    slots_.resize(slots);
    price_.resize(slots, 0.0);
    envelopes_.reserve(transfers.size());
    for (std::size_t i = 0; i < transfers.size(); ++i) {
      envelopes_.emplace_back(transfers[i].utility);
      for (std::size_t s = transfers[i].begin; s < transfers[i].end; ++s) {
        slots_[s].push_back({i, 0.0});
      }
    }
  }

  void sweep() {
    for (std::size_t s = 0; s < slots_.size(); ++s) fill(s);
  }

  double reached() const {
    double sum = 0;
    for (std::size_t i = 0; i < fraction_.size(); ++i) {
      sum += envelopes_[i].value(std::min(1.0, fraction_[i]));
    }
    return sum;
  }

  double dual() const {
    double sum = 0;
    for (std::size_t s = 0; s < slots_.size(); ++s) {
      if (!slots_[s].empty()) sum += price_[s] * budget_;
    }
    for (std::size_t i = 0; i < transfers_.size(); ++i) {
      const auto& t = transfers_[i];
      double cheapest = std::numeric_limits<double>::infinity();
      for (std::size_t s = t.begin; s < t.end; ++s) cheapest = std::min(cheapest, price_[s]);
      const double slope = cheapest * t.gigabits;
      const double theta = envelopes_[i].at_slope(slope);
      sum += envelopes_[i].value(theta) - theta * slope;
    }
    return sum;
  }

 private:
  struct Share {
    std::size_t transfer;
    double gigabits;  // in this slot
  };

  // Fraction at which one more Gbit is worth `price`. Above 1 the curve is followed on: with a hard
  // end there, filling slot by slot could stop short of the optimum, since a transfer that is
  // complete by a dear slot would not move to a cheap one. reached() counts no more than 1.
  double level(std::size_t i, double price) const {
    const double slope = price * transfers_[i].gigabits;
    const Utility& u = transfers_[i].utility;
    if (slope >= u.slope(1)) return envelopes_[i].at_slope(slope);
    return 1 + (1 - slope / u.slope(1));  // at most 2: any falling continuation will do
  }

  // Divides the slot anew among its transfers, what they have in other slots being given.
  void fill(std::size_t s) {
    auto& shares = slots_[s];
    if (shares.empty()) return;
    for (auto& share : shares) {
      fraction_[share.transfer] -= share.gigabits / transfers_[share.transfer].gigabits;
    }
    const auto wanted = [&](const Share& share, double price) {
      return std::max(0.0, level(share.transfer, price) - fraction_[share.transfer]) *
             transfers_[share.transfer].gigabits;
    };
    const auto cost = [&](double price) {
      double sum = 0;
      for (const auto& share : shares) sum += wanted(share, price);
      return sum;
    };
    double low = 0, high = 0;
    for (const auto& share : shares) {
      const double steepest =
          envelopes_[share.transfer].slope(0) / transfers_[share.transfer].gigabits;
      high = std::max(high, steepest);
    }
    high *= 1 + 1e-12;  // here nobody wants anything
    if (cost(0) <= budget_) {
      high = low;
    } else {
      for (int k = 0; k < 60; ++k) {
        const double middle = (low + high) / 2;
        (cost(middle) > budget_ ? low : high) = middle;
      }
    }
    // Along the chord the demand jumps, so what lies between the two neighbouring prices is divided
    // in proportion.
    const double at_high = cost(high), at_low = cost(low);
    const double part =
        at_low > at_high ? std::clamp((budget_ - at_high) / (at_low - at_high), 0.0, 1.0) : 0;
    for (auto& share : shares) {
      const double less = wanted(share, high), more = wanted(share, low);
      share.gigabits = less + part * (more - less);
    }
    for (auto& share : shares) {
      fraction_[share.transfer] += share.gigabits / transfers_[share.transfer].gigabits;
    }
    price_[s] = high;
  }

  const std::vector<ScheduledTransfer>& transfers_;
  double budget_;
  std::vector<std::vector<Share>> slots_;
  std::vector<double> price_;
  std::vector<double> fraction_;
  std::vector<ConcaveEnvelope> envelopes_;
};

}  // namespace

ClairvoyantBound clairvoyant_bound(const std::vector<ScheduledTransfer>& transfers, double budget,
                                   double gap, int max_sweeps) {
  Schedule schedule(transfers, budget);
  ClairvoyantBound bound;
  bound.upper = std::numeric_limits<double>::infinity();
  while (bound.sweeps < max_sweeps) {
    schedule.sweep();
    ++bound.sweeps;
    // Each is a bound by itself, so the best ones may come from different sweeps.
    bound.upper = std::min(bound.upper, schedule.dual());
    bound.reached = std::max(bound.reached, schedule.reached());
    if (bound.upper - bound.reached <= gap * bound.upper) break;
  }
  return bound;
}

}  // namespace pallas::plan
