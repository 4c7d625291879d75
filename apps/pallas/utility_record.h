#pragma once
// What `pallas bench utility` saw and what follows from it: accuracy against the fraction of a
// prompt's KV, and the curve through it. Pure.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "experiment.h"
#include "plan/utility_fit.h"

namespace pallas::app {

// One question: whether it was answered rightly, by ordering and fraction ("0.4").
struct QuestionRecord {
  std::string key;
  std::uint32_t tokens = 0;  // of the prompt
  bool full = false;         // with all KV
  std::map<std::string, std::map<std::string, bool>> right;
};
std::string to_json(const QuestionRecord& question);  // one line, without its end
// By key. Lines of the same question are put together; a last line that was cut off is dropped.
// kParse, naming the line.
Result<std::map<std::string, QuestionRecord>> parse_questions(const std::string& text);

struct UtilityPoint {
  double fraction = 0;
  double accuracy = 0;  // %
  std::uint32_t questions = 0;
};
struct UtilityCurve {
  std::string ordering;
  std::vector<UtilityPoint> points;     // the last one is all KV
  std::optional<plan::UtilityFit> fit;  // the better of the two shapes; none: not S-shaped at all
};
struct UtilitySummary {
  std::uint32_t keys = 1;
  std::vector<std::uint32_t> contexts;  // several: their questions together
  std::uint32_t questions = 0;
  double mean_tokens = 0;
  double full_accuracy = 0;  // %
  bool counted = false;      // full_accuracy is at least kCountedAccuracy
  std::vector<UtilityCurve> curves;
};
// Below it, the model cannot do the task, and what it does with less KV says nothing.
inline constexpr double kCountedAccuracy = 90;

// Of questions of one kind; the fractions are ascending and below 1.
UtilitySummary summarize_utility(std::uint32_t keys, std::vector<std::uint32_t> contexts,
                                 const std::vector<const QuestionRecord*>& questions,
                                 const std::vector<std::string>& orderings,
                                 const std::vector<double>& fractions);
std::string fraction_name(double fraction);

std::string utility_table(const std::vector<UtilitySummary>& summaries);
std::string utility_json(const std::vector<UtilitySummary>& summaries);
// What an allocator needs of one model: the curve of each ordering over all counted contexts.
std::string utility_profile_json(const std::string& model_hash, std::uint32_t sinks,
                                 std::uint32_t recent, const UtilitySummary& pooled);
std::vector<experiments::Figure> utility_figures(const std::vector<UtilitySummary>& summaries);

}  // namespace pallas::app
