#include "utility_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "http/json_writer.h"

namespace pallas::app {
namespace {

std::optional<plan::UtilityFit> best_fit(const std::vector<UtilityPoint>& points) {
  std::vector<plan::AccuracyPoint> measured;
  for (const UtilityPoint& point : points) measured.push_back({point.fraction, point.accuracy});
  std::optional<plan::UtilityFit> best;
  for (const auto shape : {plan::UtilityShape::kAlgebraic, plan::UtilityShape::kLogistic}) {
    const auto fit = plan::fit_utility(measured, shape);
    if (fit && (!best || fit->r_squared > best->r_squared)) best = *fit;
  }
  return best;
}

const char* name_of(plan::UtilityShape shape) {
  switch (shape) {
    case plan::UtilityShape::kAlgebraic:
      return "algebraic";
    case plan::UtilityShape::kLogistic:
      return "logistic";
  }
  return "";
}

std::string contexts_text(const UtilitySummary& summary) {
  std::string text;
  for (const auto context : summary.contexts) {
    text += (text.empty() ? "" : "+") + std::to_string(context);
  }
  return text;
}

void write(http::JsonWriter& json, const UtilityCurve& curve) {
  json.member("ordering", curve.ordering).key("points").begin_array();
  for (const UtilityPoint& point : curve.points) {
    json.begin_object()
        .member("fraction", point.fraction)
        .member("accuracy", point.accuracy)
        .member("questions", point.questions)
        .end_object();
  }
  json.end_array().key("fit");
  if (!curve.fit) {
    json.null();
    return;
  }
  json.begin_object()
      .member("shape", name_of(curve.fit->utility.shape))
      .member("full", curve.fit->utility.full)
      .member("steepness", curve.fit->utility.steepness)
      .member("threshold", curve.fit->utility.threshold)
      .member("r_squared", curve.fit->r_squared)
      .end_object();
}

QuestionRecord read_question(const nlohmann::json& object) {
  QuestionRecord question;
  question.key = object.at("question").get<std::string>();
  question.tokens = object.at("tokens").get<std::uint32_t>();
  question.full = object.at("full").get<bool>();
  question.right = object.at("right").get<decltype(question.right)>();
  return question;
}

}  // namespace

std::string fraction_name(double fraction) {
  return fmt::format("{}", fraction);
}

std::string to_json(const QuestionRecord& question) {
  http::JsonWriter json;
  json.begin_object()
      .member("question", question.key)
      .member("tokens", question.tokens)
      .member("full", question.full)
      .key("right")
      .begin_object();
  for (const auto& [ordering, fractions] : question.right) {
    json.key(ordering).begin_object();
    for (const auto& [fraction, right] : fractions) json.member(fraction, right);
    json.end_object();
  }
  return json.end_object().end_object().take();
}

Result<std::map<std::string, QuestionRecord>> parse_questions(const std::string& text) {
  std::map<std::string, QuestionRecord> questions;
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) break;
    ++number;
    try {
      QuestionRecord read = read_question(nlohmann::json::parse(text.substr(begin, end - begin)));
      QuestionRecord& kept = questions[read.key];
      for (auto& [ordering, fractions] : read.right) {
        kept.right[ordering].merge(fractions);
      }
      read.right = std::move(kept.right);
      kept = std::move(read);
    } catch (const nlohmann::json::exception& error) {
      return fail(Errc::kParse, fmt::format("line {}: {}", number, error.what()));
    }
    begin = end + 1;
  }
  return questions;
}

UtilitySummary summarize_utility(std::uint32_t keys, std::vector<std::uint32_t> contexts,
                                 const std::vector<const QuestionRecord*>& questions,
                                 const std::vector<std::string>& orderings,
                                 const std::vector<double>& fractions) {
  UtilitySummary summary;
  summary.keys = keys;
  summary.contexts = std::move(contexts);
  summary.questions = static_cast<std::uint32_t>(questions.size());
  const double all = std::max<double>(summary.questions, 1);
  double tokens = 0, full = 0;
  for (const QuestionRecord* question : questions) {
    tokens += question->tokens;
    full += question->full ? 1 : 0;
  }
  summary.mean_tokens = tokens / all;
  summary.full_accuracy = 100 * full / all;
  summary.counted = summary.full_accuracy >= kCountedAccuracy;
  for (const std::string& ordering : orderings) {
    UtilityCurve curve;
    curve.ordering = ordering;
    for (const double fraction : fractions) {
      UtilityPoint point{fraction, 0, 0};
      double right = 0;
      for (const QuestionRecord* question : questions) {
        const auto by_fraction = question->right.find(ordering);
        if (by_fraction == question->right.end()) continue;
        const auto known = by_fraction->second.find(fraction_name(fraction));
        if (known == by_fraction->second.end()) continue;
        ++point.questions;
        right += known->second ? 1 : 0;
      }
      if (point.questions == 0) continue;
      point.accuracy = 100 * right / point.questions;
      curve.points.push_back(point);
    }
    curve.points.push_back({1, summary.full_accuracy, summary.questions});
    curve.fit = best_fit(curve.points);
    summary.curves.push_back(std::move(curve));
  }
  return summary;
}

std::string utility_table(const std::vector<UtilitySummary>& summaries) {
  std::string text;
  for (const UtilitySummary& summary : summaries) {
    text += fmt::format("{} key{}, context {} ({:.0f} tokens), {} questions, full KV {:.1f} %{}\n",
                        summary.keys, summary.keys == 1 ? "" : "s", contexts_text(summary),
                        summary.mean_tokens, summary.questions, summary.full_accuracy,
                        summary.counted ? "" : ": below 90 %, for information only");
    if (summary.curves.empty()) continue;
    text += fmt::format("  {:<20}", "accuracy % at");
    for (const auto& point : summary.curves.front().points) {
      text += fmt::format(" {:>6}", fraction_name(point.fraction));
    }
    text += fmt::format("  {:>6} {:>6} {:>6} {:>6}\n", "R2", "tau", "k", "M");
    for (const UtilityCurve& curve : summary.curves) {
      text += fmt::format("  {:<20}", curve.ordering);
      for (const auto& point : curve.points) text += fmt::format(" {:>6.1f}", point.accuracy);
      if (curve.fit) {
        text += fmt::format("  {:>6.3f} {:>6.3f} {:>6.1f} {:>6.1f}", curve.fit->r_squared,
                            curve.fit->utility.threshold, curve.fit->utility.steepness,
                            curve.fit->utility.full);
      }
      text += "\n";
    }
    text += "\n";
  }
  return text;
}

std::string utility_json(const std::vector<UtilitySummary>& summaries) {
  http::JsonWriter json;
  json.begin_array();
  for (const UtilitySummary& summary : summaries) {
    for (const UtilityCurve& curve : summary.curves) {
      json.begin_object().member("keys", summary.keys).key("contexts").begin_array();
      for (const auto context : summary.contexts) json.value(context);
      json.end_array()
          .member("mean_tokens", summary.mean_tokens)
          .member("questions", summary.questions)
          .member("full_accuracy", summary.full_accuracy)
          .member("counted", summary.counted);
      write(json, curve);
      json.end_object();
    }
  }
  return json.end_array().take();
}

std::string utility_profile_json(const std::string& model_hash, std::uint32_t sinks,
                                 std::uint32_t recent, const UtilitySummary& pooled) {
  http::JsonWriter json;
  json.begin_object()
      .member("model_hash", model_hash)
      .member("always_sinks", sinks)
      .member("always_recent", recent)
      .member("questions", pooled.questions)
      .key("contexts")
      .begin_array();
  for (const auto context : pooled.contexts) json.value(context);
  json.end_array().key("curves").begin_array();
  for (const UtilityCurve& curve : pooled.curves) {
    json.begin_object();
    write(json, curve);
    json.end_object();
  }
  return json.end_array().end_object().take();
}

std::vector<experiments::Figure> utility_figures(const std::vector<UtilitySummary>& summaries) {
  std::vector<experiments::Figure> figures;
  for (const UtilitySummary& summary : summaries) {
    experiments::Figure figure;
    figure.name = fmt::format("utility-{}key-{}", summary.keys, contexts_text(summary));
    figure.title = fmt::format("accuracy with a part of the KV ({} key{}, context {})",
                               summary.keys, summary.keys == 1 ? "" : "s", contexts_text(summary));
    figure.x_label = "fraction of the prompt's KV";
    figure.y_label = "accuracy, %";
    for (const UtilityCurve& curve : summary.curves) {
      figure.curves.push_back({curve.ordering, {}});
      for (const auto& point : curve.points) {
        figure.curves.back().points.emplace_back(point.fraction, point.accuracy);
      }
    }
    figures.push_back(std::move(figure));
  }
  return figures;
}

}  // namespace pallas::app
