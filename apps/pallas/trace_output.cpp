#include "trace_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "http/json_writer.h"

namespace pallas::app {
namespace {

using Kind = TraceItem::Kind;

// A slice under an end of a message: arrows bind to slices, not to instants.
constexpr std::int64_t kEndOfMessageUs = 1;

struct Slice {
  std::int64_t begin = 0, end = 0;
};

// Slices of one thread must lie side by side or inside each other.
bool fits(const Slice& a, const Slice& b) {
  const bool apart = a.end <= b.begin || b.end <= a.begin;
  const bool a_in_b = b.begin <= a.begin && a.end <= b.end;
  const bool b_in_a = a.begin <= b.begin && b.end <= a.end;
  return apart || a_in_b || b_in_a;
}

const char* name_of(TraceLane lane) {
  switch (lane) {
    case TraceLane::kProtocol:
      return "protocol";
    case TraceLane::kLink:
      return "link";
    case TraceLane::kEngine:
      return "engine";
  }
  return "";
}

int process_of(TraceRole who) {
  return static_cast<int>(who) + 1;
}

const std::string& label_of(const TraceTimeline& timeline, TraceRole who) {
  return who == TraceRole::kSource   ? timeline.source
         : who == TraceRole::kTarget ? timeline.target
                                     : timeline.ue;
}

const char* word_for(TraceRole who) {
  return who == TraceRole::kSource ? "source" : who == TraceRole::kTarget ? "target" : "UE";
}

class Writer {
 public:
  explicit Writer(const TraceTimeline& timeline) : timeline_(timeline) {
    for (const auto& item : timeline.items) start_ms_ = std::min(start_ms_, item.begin_ms);
  }

  std::string write() {
    json_.begin_object().key("traceEvents").begin_array();
    place_items();
    name_processes();
    for (std::size_t i = 0; i < timeline_.items.size(); ++i) write_item(i);
    for (std::size_t i = 0; i < timeline_.arrows.size(); ++i) write_arrow(i);
    json_.end_array().member("displayTimeUnit", "ms");
    json_.key("otherData")
        .begin_object()
        .member("handover", timeline_.title)
        .member("clock", timeline_.clock)
        .member("zero_us", us(0))
        .member("zero", timeline_.zero)
        .end_object();
    return json_.end_object().take();
  }

 private:
  struct Place {
    Slice slice;
    int thread = 0;
  };

  std::int64_t us(double ms) const { return std::llround((ms - start_ms_) * 1000); }

  // Gives every item its thread: the lane's first on which it fits. Longer slices choose first.
  void place_items() {
    places_.resize(timeline_.items.size());
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < timeline_.items.size(); ++i) {
      const TraceItem& item = timeline_.items[i];
      Slice& slice = places_[i].slice;
      slice = {us(item.begin_ms), us(item.end_ms)};
      if (item.kind == Kind::kMessage) slice.end = slice.begin + kEndOfMessageUs;
      order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return places_[a].slice.end - places_[a].slice.begin >
             places_[b].slice.end - places_[b].slice.begin;
    });
    for (const std::size_t i : order) {
      const TraceItem& item = timeline_.items[i];
      auto& threads = threads_[{item.who, item.lane}];
      std::size_t thread = 0;
      if (item.kind != Kind::kInstant) {
        const auto taken = [&](std::size_t t) {
          return std::any_of(threads[t].begin(), threads[t].end(),
                             [&](const Slice& other) { return !fits(places_[i].slice, other); });
        };
        while (thread < threads.size() && taken(thread)) ++thread;
      }
      if (thread >= threads.size()) threads.resize(thread + 1);
      if (item.kind != Kind::kInstant) threads[thread].push_back(places_[i].slice);
      places_[i].thread = thread_number(item.lane, thread);
    }
  }

  static int thread_number(TraceLane lane, std::size_t thread) {
    return (static_cast<int>(lane) + 1) * 10 + static_cast<int>(thread);
  }

  void metadata(const char* name, int process, int thread, const std::string& value) {
    json_.begin_object()
        .member("name", name)
        .member("ph", "M")
        .member("pid", process)
        .member("tid", thread);
    json_.key("args").begin_object().member("name", value).end_object().end_object();
  }

  void name_processes() {
    TraceRole last{};
    bool any = false;
    for (const auto& [row, threads] : threads_) {
      const auto& [who, lane] = row;
      const int process = process_of(who);
      if (!any || who != last) {
        const std::string& label = label_of(timeline_, who);
        metadata("process_name", process, 0, word_for(who) + (label.empty() ? "" : " " + label));
      }
      any = true;
      last = who;
      for (std::size_t t = 0; t < threads.size(); ++t) {
        metadata("thread_name", process, thread_number(lane, t),
                 t == 0 ? name_of(lane) : fmt::format("{} {}", name_of(lane), t + 1));
      }
    }
  }

  void head(const std::string& name, const char* phase, TraceLane lane, std::size_t item,
            std::int64_t at) {
    json_.begin_object()
        .member("name", name)
        .member("cat", name_of(lane))
        .member("ph", phase)
        .member("pid", process_of(timeline_.items[item].who))
        .member("tid", places_[item].thread)
        .member("ts", at);
  }

  void write_item(std::size_t i) {
    const TraceItem& item = timeline_.items[i];
    const Slice& slice = places_[i].slice;
    if (item.kind == Kind::kInstant) {
      head(item.name, "i", item.lane, i, slice.begin);
      json_.member("s", "t").end_object();
      return;
    }
    head(item.name, "X", item.lane, i, slice.begin);
    json_.member("dur", slice.end - slice.begin);
    if (item.count) {
      json_.key("args").begin_object().member("count", item.count).member("tokens", item.tokens);
      if (item.busy_ms) json_.member("busy_ms", item.busy_ms);
      json_.end_object();
    }
    json_.end_object();
  }

  void write_arrow(std::size_t i) {
    const TraceArrow& arrow = timeline_.arrows[i];
    for (const auto& [phase, item] : {std::pair("s", arrow.from), std::pair("f", arrow.to)}) {
      head(arrow.name, phase, TraceLane::kProtocol, item, places_[item].slice.begin);
      json_.member("id", i + 1);
      if (*phase == 'f') json_.member("bp", "e");
      json_.end_object();
    }
  }

  const TraceTimeline& timeline_;
  http::JsonWriter json_;
  double start_ms_ = 0;
  std::vector<Place> places_;
  std::map<std::pair<TraceRole, TraceLane>, std::vector<std::vector<Slice>>> threads_;
};

}  // namespace

std::string chrome_trace(const TraceTimeline& timeline) {
  return Writer(timeline).write();
}

std::string phase_table(const TraceTimeline& timeline) {
  std::string out =
      fmt::format("{}\ntimes in ms from {}; {}\n", timeline.title, timeline.zero, timeline.clock);
  for (const auto& sentence : timeline.missing) out += sentence + "\n";
  out += fmt::format("\n{:>10}  {:<7} {:<9} {:<36} {:>9}  {}\n", "ms", "where", "", "phase",
                     "lasts ms", "what");
  for (const auto& item : timeline.items) {
    if (item.kind == Kind::kSpan) continue;
    std::string lasts, what;
    if (item.count) {
      lasts = fmt::format("{:.1f}", item.end_ms - item.begin_ms);
      what = fmt::format("{} tokens in {}", item.tokens.value_or(0), *item.count);
      if (item.busy_ms && *item.busy_ms > 0) {
        what += fmt::format(", {:.1f} ms of the engine", *item.busy_ms);
      }
    }
    out += fmt::format("{:>10.1f}  {:<7} {:<9} {:<36} {:>9}  {}\n", item.begin_ms,
                       word_for(item.who), name_of(item.lane), item.name, lasts, what);
  }
  // Lines end where their text does.
  std::string trimmed;
  for (std::size_t at = 0; at < out.size();) {
    const std::size_t end = out.find('\n', at);
    const std::size_t last = out.find_last_not_of(' ', end - 1);
    trimmed += out.substr(at, last + 1 - at) + '\n';
    at = end + 1;
  }
  return trimmed;
}

}  // namespace pallas::app
