// spark-staged: the daemon, and with `worker VERB` one of its workers.
#include <malloc.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>

#include "base/access/locks.hpp"
#include "base/apart.hpp"
#include "base/kernel/mount_table.hpp"
#include "base/version.hpp"
#include "daemon/api/server.hpp"
#include "daemon/config/parse.hpp"
#include "daemon/host/worker_host.hpp"
#include "daemon/log.hpp"
#include "daemon/mounts/served_copies.hpp"
#include "daemon/service/release.hpp"
#include "daemon/service/service.hpp"
#include "daemon/sim/confinement.hpp"
#include "daemon/sim/simulation.hpp"
#include "daemon/state_lock.hpp"
#include "daemon/workers/verbs/protocol.hpp"
#include "nvmetcp/connect/libnvme_gateway.hpp"
#include "nvmetcp/host_identity.hpp"
#include "staging/cache/folder/cache_folder.hpp"
#include "staging/view/fuse/fuse_session.hpp"

namespace {

// How long a daemon that was told to stop may still have its state folder.
constexpr std::chrono::seconds kEndOfEarlier{5};

int complain(const spark::Error& error) {
  std::fprintf(stderr, "spark-staged: %s\n", error.message().c_str());
  return spark::exit_status(error.kind);
}

spark::Result<spark::config::Config> load_for_this_host(const std::filesystem::path& file) {
  auto config = spark::config::load(file);
  if (!config) return config;
  if (auto fits = spark::config::check_simulation(*config, false); !fits) return fits.take_error();
  return config;
}

// A simulation must have its own paths.
spark::Result<> check_own_places(const spark::ServiceOptions& options) {
  const spark::ServiceOptions real;
  if (options.socket == real.socket) {
    return spark::fail(spark::Errc::Invalid,
                       "a simulation must not answer on this host's own socket, " + real.socket.native(),
                       "give it another one: --socket PATH");
  }
  if (options.state_dir == real.state_dir) {
    return spark::fail(spark::Errc::Invalid,
                       "a simulation must not use this host's own state folder, " + real.state_dir.native(),
                       "give it another one: --state-dir FOLDER");
  }
  return {};
}

spark::Result<spark::MakeHost> host_of(spark::ServiceOptions& options, const spark::config::Config& config,
                                       bool is_simulated) {
  if (is_simulated) {
    if (auto own = check_own_places(options); !own) return own.take_error();
    options.group.clear();  // its API is only for the user that started it
    return spark::sim::prepare(options.state_dir, config);
  }
  if (auto real = spark::sim::check_not_simulated(options.state_dir); !real) return real.take_error();
  return [](spark::HostContext context) -> std::unique_ptr<spark::Host> {
    return std::make_unique<spark::WorkerHost>(std::move(context));
  };
}

struct DaemonOptions {
  bool is_simulated = false;
  bool makes_identity = false;  // of this host, if it has none
  std::string log = "text";
};

// A host without systemd has no package that created an identity, and an image must not contain one.
spark::Result<> make_identity() {
  const auto made = spark::nvmetcp::make_missing_host_identity({});
  if (!made) return made.take_error();
  if (*made) spark::log::info("this host had no identity: /etc/nvme/hostnqn and /etc/nvme/hostid are made");
  return {};
}

// Users enter the state folder for the copies in it, by name; the rest is for root alone. Earlier versions
// left it open.
void close_state(const std::filesystem::path& state) {
  std::error_code error;  // as of a full drive; the code that needs a folder makes it again
  std::filesystem::create_directories(state, error);
  auto closed = spark::restrict_to(state, 0711);
  for (const char* name : {"volumes", "stage-outs", "mount-points", "fleet", "live"}) {
    ::mkdir((state / name).c_str(), 0700);
    if (closed) closed = spark::restrict_to(state / name, 0700);
  }
  if (!closed) spark::log::survived(closed.error());
}

int run_daemon(spark::ServiceOptions options, const DaemonOptions& how) {
  const bool is_simulated = how.is_simulated;
  spark::log::start(how.log == "json" ? spark::log::Format::Json : spark::log::Format::Text);
  if (auto same = spark::nvmetcp::check_libnvme_version(); !same) return complain(same.error());
  auto config =
      is_simulated ? spark::config::load(options.config_file) : load_for_this_host(options.config_file);
  if (!config) {
    complain(config.error());
    return spark::exit_status(spark::Errc::Invalid);
  }
  if (how.makes_identity && !is_simulated) {
    if (const auto made = make_identity(); !made) return complain(made.error());
  }
  const auto make_host = host_of(options, *config, is_simulated);
  if (!make_host) return complain(make_host.error());
  if (!is_simulated) close_state(options.state_dir);
  const auto alone = spark::lock_state(options.state_dir, kEndOfEarlier);
  if (!alone) return complain(alone.error());
  boost::asio::io_context context(1);
  const spark::SystemClock clock;
  spark::SystemdNotifier notifier;
  spark::Service service(context, std::move(options), std::move(*config), *make_host, clock, notifier);
  if (auto started = service.start(); !started) return complain(started.error());
  context.run();
  return 0;
}

// Those of every cache that is mounted now, wherever the configuration says that it is.
spark::Result<> stop_serving_copies() {
  const auto table = spark::mounts::read_mount_table({});
  if (!table) return table.take_error();
  spark::Result<> all;
  spark::mounts::detach_all_of(spark::staging::kFuseType);
  for (const spark::mounts::Mount& mount : *table) {
    if (mount.target.filename() != "data" || mount.root == "/") continue;  // a whole file system: a volume
    const auto id = spark::staging::CacheFolder(mount.target.parent_path()).id();
    if (!id || id->empty()) continue;
    const auto off = spark::mounts::stop_serving_read_only(mount.target);
    if (!off)
      all = spark::fail(off.error().kind,
                        all ? off.error().message() : all.error().what + "; " + off.error().message());
  }
  return all;
}

// Makes the copies deletable by their owner once no daemon serves them. Live views have ended with their
// daemon. In a process of its own, which has no part in the lock: one that a dead drive holds in the kernel
// can't be ended, and would keep every later daemon from its start.
int make_copies_writable(const spark::UniqueFd& lock) {
  constexpr std::chrono::seconds kPatience{40};
  const spark::ApartOptions options{.doing = "ending the mounts of the staged copies",
                                    .deadline = kPatience,
                                    .hint = "a drive does not answer; the others' may still be mounted"};
  const auto work = [&] {
    if (lock) ::close(lock.get());
    return stop_serving_copies();
  };
  const auto done = spark::run_apart(options, work);
  return done ? 0 : complain(done.error());
}

// Refused while a daemon runs, which would bring volumes up again, and go on serving copies that a job could
// then write to; none can start as long as the result exists.
spark::Result<spark::UniqueFd> no_daemon(const spark::ServiceOptions& options, const std::string& why_not) {
  auto alone = spark::lock_state(options.state_dir, {});
  if (alone && !spark::api::Server::is_answered(options.socket)) return alone;
  return spark::fail(spark::Errc::Refused, why_not, "`sudo systemctl stop spark-staged` first");
}

int run_release(const spark::ServiceOptions& options, bool at_shutdown) {
  if (at_shutdown && !spark::is_machine_stopping()) return 0;
  spark::Result<spark::UniqueFd> alone;
  if (!at_shutdown) {
    alone = no_daemon(options, "spark-staged is running, and would bring the volumes up again");
    if (!alone) return complain(alone.error());
  }
  spark::log::start();
  // A reload may have refused the file, or it was damaged since; connected volumes must be released
  // nevertheless.
  const auto config = load_for_this_host(options.config_file);
  if (!config) complain(config.error());
  bool all_gone = true;
  if (config || at_shutdown) {
    all_gone =
        spark::release_all(config.value_or(spark::config::Config{}), options.program, options.state_dir,
                           at_shutdown ? spark::ReleaseReason::Shutdown : spark::ReleaseReason::Asked);
  }
  if (!config) return spark::exit_status(spark::Errc::Invalid);
  if (at_shutdown) return 0;
  const int writable = make_copies_writable(*alone);
  return all_gone ? writable : spark::exit_status(spark::Errc::Failed);
}

constexpr char kSummary[] = "Keeps shared NVMe/TCP volumes connected and mounted, and stages datasets.";

constexpr char kExamples[] =
    "Examples:\n"
    "  sudo systemctl start spark-staged      the usual way\n"
    "  sudo systemctl reload spark-staged     reads its configuration again\n"
    "  sudo spark-staged --config ./new.yaml  in a terminal, until ^C\n"
    "  sudo spark-staged release              release all volumes of a stopped daemon\n\n"
    "Mounts survive a stop or a crash. Its log: journalctl -u spark-staged; its\n"
    "volumes: spark-stage status.";

// CLI11's help without its automatic additions: the descriptions name the defaults.
class Help final : public CLI::Formatter {
 public:
  Help() {
    column_width(24);
    label("SUBCOMMAND", "VERB");
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string type = option->get_type_name();
    return type.empty() ? "" : " " + type;
  }
};

// `simulation`: the file that describes a simulated host; empty means the real host.
void define_options(CLI::App& app, spark::ServiceOptions& options, DaemonOptions& how,
                    std::filesystem::path& simulation) {
  app.formatter(std::make_shared<Help>());
  app.footer(kExamples);
  app.set_help_flag("-h,--help", "show this help");
  app.add_option("--config", options.config_file, "configuration (" + options.config_file.string() + ")")
      ->type_name("FILE");
  app.add_option("--socket", options.socket,
                 "of its API ($SPARK_STAGE_SOCKET, else\n" + options.socket.string() + ")")
      ->envname("SPARK_STAGE_SOCKET")
      ->type_name("PATH");
  app.add_option("--state-dir", options.state_dir,
                 "the state kept across restarts (" + options.state_dir.string() + ")")
      ->type_name("FOLDER");
  app.add_option("--sim", simulation, "configuration of a simulated host: nothing of\nthis one is touched")
      ->type_name("FILE")
      ->excludes("--config");
  app.add_option("--log", how.log, "its lines on stderr: text or json\n($SPARK_STAGE_LOG, else text)")
      ->envname("SPARK_STAGE_LOG")
      ->check(CLI::IsMember({"text", "json"}))
      ->type_name("FORMAT");
  app.add_flag("--make-identity", how.makes_identity,
               "make /etc/nvme/hostnqn and hostid where they\nare missing, as in a container");
  app.set_version_flag("--version", std::string("spark-staged ") + spark::kVersion, "this program's version");
}

int run(int argc, char** argv) {
  CLI::App app{kSummary, "spark-staged"};
  spark::ServiceOptions options;
  options.program = "/proc/self/exe";
  std::string verb;
  std::filesystem::path simulation;
  DaemonOptions how;
  define_options(app, options, how, simulation);
  auto* worker = app.add_subcommand("worker", "")->group("");
  worker->add_option("verb", verb)->required();
  bool at_shutdown = false;
  auto* release = app.add_subcommand("release", "unmount and disconnect all volumes of a stopped daemon");
  release->group("Verbs")->excludes(app.get_option("--sim"))->fallthrough();
  release->add_flag("--at-shutdown", at_shutdown, "do nothing unless the machine is going down");
  bool only_copies = false;
  release->add_flag("--copies", only_copies, "only end the mounts of staged copies and of live views");
  release->footer("Examples:\n  sudo systemctl stop spark-staged && sudo spark-staged release");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // help, version
    return complain({spark::Errc::Invalid, error.what(), "see `spark-staged --help`"});
  }
  if (only_copies) {
    const auto alone = no_daemon(options, "spark-staged is running, and serves the copies");
    return alone ? make_copies_writable(*alone) : complain(alone.error());
  }
  if (release->parsed()) return run_release(options, at_shutdown);
  if (worker->parsed()) return spark::workers::worker_main(verb);
  how.is_simulated = !simulation.empty();
  if (how.is_simulated) options.config_file = simulation;
  return run_daemon(std::move(options), how);
}

}  // namespace

int main(int argc, char** argv) {
  // Memory that many threads allocate and free by the million is shared by all threads.
  ::mallopt(M_ARENA_MAX, 2);
  ::signal(SIGPIPE, SIG_IGN);
  // Workers read keys: they must not dump core, and only root may inspect them.
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  try {
    return run(argc, argv);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "spark-staged: %s - this is a defect, please report it\n", failure.what());
    return spark::exit_status(spark::Errc::Failed);
  }
}
