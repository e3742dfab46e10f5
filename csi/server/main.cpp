// spark-stage-csi: provides datasets as volumes for Kubernetes pods.
#include <csignal>
#include <cstdio>
#include <string>

#include "base/json_log.hpp"
#include "base/version.hpp"
#include "csi/server/options.hpp"
#include "csi/server/server.hpp"

namespace {

bool logs_json = false;
spark::StopFlag stop = false;
static_assert(spark::StopFlag::is_always_lock_free, "a signal handler sets it");

void request_stop(int /*signal*/) {
  stop = true;
}

void say(const std::string& sentence) {
  const std::string line = logs_json ? spark::json_log_line(spark::SystemClock().wall(), "info", sentence)
                                     : "spark-stage-csi: " + sentence;
  std::fprintf(stderr, "%s\n", line.c_str());
}

int complain(const spark::Error& error) {
  say(error.message());
  return spark::exit_status(error.kind);
}

}  // namespace

int main(int argc, char** argv) {
  const auto options = spark::csi::read_options(argc, argv);
  if (!options) return complain(options.error());
  logs_json = options->logs_json;
  if (options->shows_help) return std::fputs(spark::csi::kHelp, stdout) < 0 ? 1 : 0;
  if (options->shows_version) return std::printf("spark-stage-csi %s\n", spark::kVersion) < 0 ? 1 : 0;
  std::signal(SIGTERM, request_stop);
  std::signal(SIGINT, request_stop);
  std::signal(SIGPIPE, SIG_IGN);
  if (auto served = spark::csi::serve(*options, stop, say); !served) return complain(served.error());
  return 0;
}
