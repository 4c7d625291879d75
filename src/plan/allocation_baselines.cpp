#include "plan/allocation_baselines.h"

#include <algorithm>
#include <numeric>

#include "plan/allocator.h"

namespace pallas::plan {
namespace {

std::vector<double> received(const std::vector<Receiver>& receivers) {
  std::vector<double> y;
  y.reserve(receivers.size());
  for (const auto& r : receivers) y.push_back(r.received);
  return y;
}

std::vector<std::size_t> everybody(const std::vector<Receiver>& receivers) {
  std::vector<std::size_t> who(receivers.size());
  std::iota(who.begin(), who.end(), std::size_t{0});
  return who;
}

double missing(const Receiver& r) {
  return (1 - r.received) * r.gigabits;
}

}  // namespace

std::vector<double> equal_bits(const std::vector<Receiver>& receivers,
                               const std::vector<std::size_t>& who, double budget) {
  std::vector<double> y = received(receivers);
  // Whoever misses least is complete first; after it the share of the others is known.
  auto order = who;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return missing(receivers[a]) < missing(receivers[b]);
  });
  double left = budget;
  for (std::size_t k = 0; k < order.size(); ++k) {
    const Receiver& r = receivers[order[k]];
    const double share = left / static_cast<double>(order.size() - k);
    const double bits = std::min(share, missing(r));
    y[order[k]] = bits < missing(r) ? r.received + bits / r.gigabits : 1;
    left -= bits;
  }
  return y;
}

std::vector<double> winner_takes_all(const std::vector<Receiver>& receivers,
                                     const std::vector<std::size_t>& who, double budget) {
  std::vector<double> y = received(receivers);
  std::vector<std::size_t> waiting = who;
  double left = budget;
  while (left > 0 && !waiting.empty()) {
    const auto gain = [&](std::size_t i) {
      const Receiver& r = receivers[i];
      const double reached = std::min(1.0, r.received + left / r.gigabits);
      return r.utility.value(reached) - r.utility.value(r.received);
    };
    const auto winner =
        std::max_element(waiting.begin(), waiting.end(),
                         [&](std::size_t a, std::size_t b) { return gain(a) < gain(b); });
    const Receiver& r = receivers[*winner];
    const double bits = std::min(left, missing(r));
    y[*winner] = bits < missing(r) ? r.received + bits / r.gigabits : 1;
    left -= bits;
    waiting.erase(winner);
  }
  return y;
}

std::vector<double> allocate_equal(const std::vector<Receiver>& receivers, double budget) {
  return equal_bits(receivers, everybody(receivers), budget);
}

std::vector<double> allocate_winner_takes_all(const std::vector<Receiver>& receivers,
                                              double budget) {
  return winner_takes_all(receivers, everybody(receivers), budget);
}

std::vector<double> allocate_proportional(const std::vector<Receiver>& receivers, double budget) {
  std::vector<double> y = received(receivers);
  // z_i = L_i y_i is raised from below to one level, each no further than L_i.
  const auto cost = [&](double level) {
    double sum = 0;
    for (const auto& r : receivers) {
      sum += std::max(0.0, std::min(level, r.gigabits) - r.received * r.gigabits);
    }
    return sum;
  };
  double low = 0, high = 0;
  for (const auto& r : receivers) high = std::max(high, r.gigabits);
  if (cost(high) > budget) {
    for (int k = 0; k < 100; ++k) {
      const double middle = (low + high) / 2;
      (cost(middle) > budget ? high : low) = middle;
    }
    high = low;
  }
  for (std::size_t i = 0; i < receivers.size(); ++i) {
    const Receiver& r = receivers[i];
    y[i] = std::max(r.received, std::min(high / r.gigabits, 1.0));
  }
  return y;
}

std::vector<Seconds> first_come_first_served(const std::vector<QueuedHandover>& queue) {
  std::vector<Seconds> times;
  times.reserve(queue.size());
  Seconds free{0};
  for (const auto& handover : queue) {
    free = std::max(free, handover.arrival) + handover.service;
    times.push_back(free - handover.arrival);
  }
  return times;
}

}  // namespace pallas::plan
