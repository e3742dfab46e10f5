#include "csi/server/server.hpp"

#include <grpcpp/resource_quota.h>
#include <grpcpp/server_builder.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <future>
#include <memory>
#include <system_error>
#include <thread>

#include "base/text.hpp"
#include "cli/client/client.hpp"
#include "csi/server/services.hpp"

namespace spark::csi {
namespace {

// Each call that waits for a staging has a thread; a node has at most a few hundred pods.
constexpr int kMostThreads = 512;
constexpr std::chrono::seconds kReconcileEvery{60}, kEndWithin{2};
constexpr std::chrono::milliseconds kLook{100};  // interval of checking `stop`
// Shorter than the CLI's, since kubelet repeats a call.
constexpr cli::ClientDeadlines kDeadlines{Duration(1'000), Duration(5'000)};

class Server {
 public:
  Server(const Options& options, StopFlag& stop, const std::function<void(const std::string&)>& say)
      : options_(options),
        stop_(stop),
        say_(say),
        client_(cli::make_unix_client(options.socket, stop, kDeadlines)),
        daemon_(*client_),
        node_(
            daemon_, mounter_, clock_, [](Duration time) { std::this_thread::sleep_for(time); }, say),
        identity_service_(daemon_),
        node_service_(node_, options.node_id, stop),
        registration_service_(options.csi_socket().native(), say,
                              [this](const std::string& why) { refused(why); }) {}

  Result<> run() {
    for (const auto& socket : {options_.csi_socket(), options_.registration_socket()}) {
      if (auto made = make_folder_of(socket); !made) return made;
    }
    ::umask(0077);  // only root may connect
    grpc::ResourceQuota quota;
    quota.SetMaxThreads(kMostThreads);
    grpc::ServerBuilder builder;
    builder.SetResourceQuota(quota);
    int csi_port = 0, registration_port = 0;
    const auto credentials = grpc::InsecureServerCredentials();  // for a socket that only root may open
    builder.AddListeningPort("unix://" + options_.csi_socket().native(), credentials, &csi_port);
    builder.AddListeningPort("unix://" + options_.registration_socket().native(), credentials,
                             &registration_port);
    builder.RegisterService(&identity_service_);
    builder.RegisterService(&node_service_);
    builder.RegisterService(&registration_service_);
    const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
    if (!server || csi_port <= 0 || registration_port <= 0) {
      return fail(Errc::Failed,
                  "listening on " + printable(options_.csi_socket().native()) + " and " +
                      printable(options_.registration_socket().native()),
                  "is --kubelet-dir the folder of this node's kubelet, and may root write there?");
    }
    say_("listening on " + options_.csi_socket().native() + " as node " + printable(options_.node_id));
    reconcile_until_stopped();
    end(*server);
    if (!why_refused_.empty()) return fail(Errc::Failed, "kubelet refused the driver: " + why_refused_);
    return {};
  }

 private:
  static Result<> make_folder_of(const std::filesystem::path& socket) {
    std::error_code error;
    std::filesystem::create_directories(socket.parent_path(), error);
    if (error)
      return fail_errno(error.value(), "making the folder " + printable(socket.parent_path().native()));
    return {};
  }

  void reconcile_until_stopped() {
    auto next = std::chrono::steady_clock::now();
    std::string last_trouble;  // each distinct message is logged once
    while (!stop_) {
      if (std::chrono::steady_clock::now() >= next) {
        const auto done = node_.reconcile(options_.kubelet_dir);
        const std::string trouble = done ? "" : done.error().message();
        if (trouble != last_trouble && !trouble.empty())
          say_("leases are compared with the pods later: " + trouble);
        last_trouble = trouble;
        next = std::chrono::steady_clock::now() + kReconcileEvery;
      }
      std::this_thread::sleep_for(kLook);
    }
  }

  // A call to an unresponsive daemon, or a hanging mount, can't be ended. It is safe to exit anyway: the
  // mount either exists or not, and kubelet repeats the call.
  void end(grpc::Server& server) {
    const int status = why_refused_.empty() ? 0 : 1;
    std::promise<void> shut_down;
    auto watchdog = start_thread([ended = shut_down.get_future().share(), status] {
      if (ended.wait_for(kEndWithin) == std::future_status::timeout) std::_Exit(status);
    });
    if (!watchdog.joinable()) std::_Exit(status);
    server.Shutdown(std::chrono::system_clock::now());
    shut_down.set_value();
    watchdog.join();
  }

  void refused(const std::string& why) {
    why_refused_ = why.empty() ? "without a reason" : why;
    stop_ = true;
  }

  const Options& options_;
  StopFlag& stop_;
  std::function<void(const std::string&)> say_;
  const SystemClock clock_;
  KernelMounter mounter_;
  std::unique_ptr<cli::Client> client_;
  Daemon daemon_;
  Node node_;
  IdentityService identity_service_;
  NodeService node_service_;
  RegistrationService registration_service_;
  std::string why_refused_;  // written before stop_ is set
};

}  // namespace

Result<> serve(const Options& options, StopFlag& stop, const std::function<void(const std::string&)>& say) {
  return Server(options, stop, say).run();
}

}  // namespace spark::csi
