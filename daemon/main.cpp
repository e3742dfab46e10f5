// spark-staged: the daemon, and with `worker VERB` one of its workers.
#include <malloc.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "base/version.hpp"
#include "daemon/log.hpp"
#include "daemon/release.hpp"
#include "daemon/service.hpp"
#include "daemon/workers/protocol.hpp"
#include "nvmetcp/libnvme_gateway.hpp"

namespace {

int complain(const spark::Error& error) {
  std::fprintf(stderr, "spark-staged: %s\n", error.message().c_str());
  return spark::exit_status(error.kind);
}

int run_daemon(spark::ServiceOptions options) {
  spark::log::start();
  if (auto same = spark::nvmetcp::check_libnvme_version(); !same) return complain(same.error());
  auto config = spark::config::load(options.config_file);
  if (!config) {
    complain(config.error());
    return spark::exit_status(spark::Errc::Invalid);
  }
  boost::asio::io_context context(1);
  const spark::SystemClock clock;
  spark::SystemdNotifier notifier;
  spark::Service service(context, std::move(options), std::move(*config), clock, notifier);
  if (auto started = service.start(); !started) return complain(started.error());
  context.run();
  return 0;
}

int run_release(const spark::ServiceOptions& options, bool at_shutdown) {
  if (at_shutdown && !spark::is_machine_stopping()) return 0;
  spark::log::start();
  // A file that was refused by a reload, or spoiled since: what is connected has to be released all the same.
  const auto config = spark::config::load(options.config_file);
  if (!config) complain(config.error());
  if (config || at_shutdown) {
    spark::release_all(config.value_or(spark::config::Config{}), options.program, options.state_dir,
                       at_shutdown ? spark::ReleaseReason::Shutdown : spark::ReleaseReason::Asked);
  }
  return config ? 0 : spark::exit_status(spark::Errc::Invalid);
}

int run(int argc, char** argv) {
  CLI::App app{
      "spark-staged keeps shared NVMe/TCP volumes connected, mounted and healthy, and stages datasets."};
  spark::ServiceOptions options;
  options.program = "/proc/self/exe";
  std::string verb;
  app.add_option("--config", options.config_file, "Configuration file")->capture_default_str();
  app.add_option("--socket", options.socket, "API socket")
      ->envname("SPARK_STAGE_SOCKET")
      ->capture_default_str();
  app.add_option("--state-dir", options.state_dir, "What is kept across restarts")->capture_default_str();
  app.set_version_flag("--version", std::string("spark-staged ") + spark::kVersion);
  auto* worker = app.add_subcommand("worker", "")->group("");
  worker->add_option("verb", verb)->required();
  bool at_shutdown = false;
  auto* release = app.add_subcommand(
      "release",
      "Unmount and disconnect all volumes; while the daemon is stopped, before the machine goes down");
  release->add_flag("--at-shutdown", at_shutdown, "Do nothing unless the machine is going down");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : spark::exit_status(spark::Errc::Invalid);
  }
  if (release->parsed()) return run_release(options, at_shutdown);
  return worker->parsed() ? spark::workers::worker_main(verb) : run_daemon(std::move(options));
}

}  // namespace

int main(int argc, char** argv) {
  ::mallopt(M_ARENA_MAX, 2);  // what many threads allocate by the million and free is used again by all
  ::signal(SIGPIPE, SIG_IGN);
  try {
    return run(argc, argv);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "spark-staged: %s - this is a defect, please report it\n", failure.what());
    return spark::exit_status(spark::Errc::Failed);
  }
}
