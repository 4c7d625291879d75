#include "http/metrics.h"

#include <gtest/gtest.h>

#include "http/rate_limiter.h"

namespace pallas::http {
namespace {

TEST(Metrics, every_figure_has_help_type_and_value) {
  node::NodeStats stats;
  stats.tokens_emitted = 12;
  stats.preparations_requested = 3;
  stats.staged_bytes = 1u << 20;
  HttpStats http;
  http.responses_4xx = 2;
  const auto text = metrics_text(stats, http, 100, {});
  EXPECT_NE(text.find("# HELP pallas_tokens_emitted_total Tokens written to clients.\n"
                      "# TYPE pallas_tokens_emitted_total counter\n"
                      "pallas_tokens_emitted_total 12\n"),
            std::string::npos);
  EXPECT_NE(text.find("\npallas_handover_preparations_requested_total 3\n"), std::string::npos);
  EXPECT_NE(text.find("# TYPE pallas_staged_bytes gauge\npallas_staged_bytes 1048576\n"),
            std::string::npos);
  EXPECT_NE(text.find("\npallas_slo_seconds 0.1\n"), std::string::npos);
  EXPECT_NE(text.find("pallas_http_responses_total{status=\"4xx\"} 2\n"), std::string::npos);
}

TEST(Metrics, samples_of_one_name_stand_together_under_one_head) {
  std::vector<Metric> others;
  for (const char* peer : {"gnb-b", "gnb-\"c\\"}) {
    others.push_back({"pallas_peer_goodput_mbps", "Goodput.", false, {{"peer", peer}}, 47.5});
    others.push_back({"pallas_peer_up", "Link.", false, {{"peer", peer}}, 1});
  }
  const auto text = metrics_text({}, {}, 100, others);
  EXPECT_NE(text.find("# HELP pallas_peer_goodput_mbps Goodput.\n"
                      "# TYPE pallas_peer_goodput_mbps gauge\n"
                      "pallas_peer_goodput_mbps{peer=\"gnb-b\"} 47.5\n"
                      "pallas_peer_goodput_mbps{peer=\"gnb-\\\"c\\\\\"} 47.5\n"),
            std::string::npos);
}

TEST(RateLimiter, a_sender_gets_its_rate_and_no_more) {
  RateLimiter limiter(10);
  TimePoint now{};
  int taken = 0;
  for (int i = 0; i < 100; ++i) taken += limiter.allow("u", now) ? 1 : 0;
  EXPECT_EQ(taken, 10);
  EXPECT_TRUE(limiter.allow("v", now));
  now += std::chrono::milliseconds(100);
  EXPECT_TRUE(limiter.allow("u", now));
  EXPECT_FALSE(limiter.allow("u", now));
}

TEST(RateLimiter, invented_names_cost_bounded_memory) {
  RateLimiter limiter(1, 4);
  const TimePoint now{};
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(limiter.allow(std::to_string(i), now));
  EXPECT_FALSE(limiter.allow("one more", now));
  EXPECT_TRUE(limiter.allow("one more", now + std::chrono::seconds(2)));
}

}  // namespace
}  // namespace pallas::http
