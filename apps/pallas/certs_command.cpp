// `pallas certs`: an authority and certificates, for tests and small sites.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "certificate_folder.h"
#include "commands.h"

namespace pallas::app {
namespace {

constexpr const char* kExamples = R"(
Examples:
  pallas certs certs --names gnb-a,gnb-b     an authority and two certificates in folder certs
  pallas certs certs --names gnb-c           one more, by the same authority
  pallas gnb --name gnb-a --peer-cert certs/gnb-a.crt --peer-key certs/gnb-a.key \
    --peer-ca certs/ca.crt ...

For tests and small sites: who has ca.key can pretend to be any gNB. Keep it away from the gNBs, or
use the authority that your site has: a gNB's certificate must carry its name as a DNS name in
subjectAltName, and be good for servers and clients. Running gNBs take new files by themselves.
)";

}  // namespace

int certs_command(std::vector<std::string> args) {
  CLI::App app("Makes an authority (once) and a certificate with its key for each name",
               "pallas certs");
  app.footer(kExamples);
  CertificateOrder order;
  int days = 365;
  app.add_option("folder", order.folder, "Where the files are, or will be")
      ->required()
      ->type_name("DIR");
  app.add_option("--names", order.names, "Names of gNBs")
      ->required()
      ->delimiter(',')
      ->type_name("A,B")
      ->take_all();
  app.add_option("--hosts", order.hosts,
                 "Host names and addresses that every certificate carries, too, for HTTPS")
      ->delimiter(',')
      ->type_name("A,B")
      ->take_all();
  app.add_option("--days", days, "How long the certificates are valid")->capture_default_str();
  try {
    std::reverse(args.begin(), args.end());
    app.parse(args);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  order.lifetime = std::chrono::hours(24) * days;
  const auto files = make_certificates(order);
  if (!files) {
    fmt::print(stderr, "pallas certs: {}\n", files.error().message);
    return files.error().code == Errc::kInvalidArgument ? kExitUsage : kExitFailed;
  }
  for (const auto& path : *files) fmt::print("{}\n", path);
  return kExitOk;
}

}  // namespace pallas::app
