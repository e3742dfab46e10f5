#include "daemon/api/server.hpp"

#include <grp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <cerrno>

#include "base/file_system.hpp"
#include "base/text.hpp"
#include "daemon/api/http_server.hpp"

namespace spark::api {
namespace {

using Local = asio::local::stream_protocol;
using Tcp = asio::ip::tcp;

constexpr uid_t kNobody = 65534;

std::optional<gid_t> group_id(const std::string& name) {
  const group* found = ::getgrnam(name.c_str());
  if (found == nullptr) return std::nullopt;
  return found->gr_gid;
}

// A process has up to 65,536 supplementary groups (NGROUPS_MAX); the kernel returns the required size of the
// list. Empty for a peer without groups.
std::vector<gid_t> groups_of(int fd) {
  std::vector<gid_t> groups(64);
  auto bytes = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
  int asked = ::getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &bytes);
  if (asked != 0 && errno == ERANGE) {
    groups.resize(bytes / sizeof(gid_t));
    asked = ::getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &bytes);
  }
  groups.resize(asked == 0 ? bytes / sizeof(gid_t) : 0);
  return groups;
}

Result<Caller> identify(int fd, std::optional<gid_t> users) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return fail_errno(errno, "identifying the caller");
  }
  std::vector<gid_t> groups = groups_of(fd);
  groups.push_back(peer.gid);

  Caller caller;
  caller.pid = peer.pid;
  caller.uid = peer.uid;
  caller.may_change = peer.uid == 0 || peer.uid == ::geteuid();
  caller.may_use =
      caller.may_change || (users && std::find(groups.begin(), groups.end(), *users) != groups.end());
  return caller;
}

class LocalServer final : public HttpServer<Local> {
 public:
  LocalServer(asio::any_io_executor executor, std::filesystem::path socket, std::optional<gid_t> users,
              Handler handler, Limits limits)
      : HttpServer<Local>(
            executor, limits, [users](Local::socket& from) { return identify(from.native_handle(), users); },
            std::move(handler)),
        path_(std::move(socket)),
        users_(users) {}

  Result<> open() {
    if (auto bound = bind(Local::endpoint(path_.native()), path_.native()); !bound) return bound;
    if (users_ && ::chown(path_.c_str(), static_cast<uid_t>(-1), *users_) != 0) {
      return fail_errno(errno, "giving " + path_.native() + " to the group spark-stage");
    }
    ::chmod(path_.c_str(), 0660);
    if (::lstat(path_.c_str(), &made_) != 0) return fail_errno(errno, "looking at " + path_.native());
    return listen(path_.native());
  }

  void stop() override {
    HttpServer<Local>::stop();
    struct stat now {};  // perhaps a later daemon's socket
    if (::lstat(path_.c_str(), &now) == 0 && is_same_file(now, made_)) ::unlink(path_.c_str());
  }

 private:
  std::filesystem::path path_;
  struct stat made_ {};
  std::optional<gid_t> users_;
};

constexpr std::size_t kLongestPath = sizeof(sockaddr_un::sun_path) - 1;

// Linux gives a socket without a path a name that every user may connect to.
bool can_be_socket(const std::filesystem::path& path) {
  return !path.empty() && path.native().size() <= kLongestPath;
}

// A socket file without a listener is left over from a killed daemon.
Result<> clear_leftover(const std::filesystem::path& socket) {
  const std::string hint = "give another path: --socket PATH";
  if (!can_be_socket(socket))
    return fail(Errc::Invalid,
                "the socket's path " + (socket.empty() ? "is empty"
                                                       : printable(socket.native()) + " is longer than " +
                                                             std::to_string(kLongestPath) + " bytes"),
                hint);
  std::error_code ignored;
  std::filesystem::create_directories(socket.parent_path(), ignored);
  struct stat info {};
  if (::lstat(socket.c_str(), &info) != 0) return {};
  // A container engine makes an empty folder of a socket that is to be mounted and is not there yet.
  if (S_ISDIR(info.st_mode) && ::rmdir(socket.c_str()) == 0) return {};
  // Not Invalid: the unit does not try again after that, and the path may be free in a moment.
  if (!S_ISSOCK(info.st_mode))
    return fail(Errc::Refused, printable(socket.native()) + " is there already, and is no socket",
                "remove it, or " + hint);
  if (Server::is_answered(socket)) {
    return fail(Errc::Unavailable, "another spark-staged answers on " + socket.native(),
                "stop it first (`systemctl stop spark-staged`), or use --socket "
                "and --state-dir, with a cache.path of its own");
  }
  ::unlink(socket.c_str());
  return {};
}

// Every client that reaches the address is accepted, so the handler must be harmless.
Result<Caller> anybody(Tcp::socket& from) {
  Caller caller;
  boost::system::error_code error;
  const auto remote = from.remote_endpoint(error);
  if (error) return fail(Errc::Unavailable, "the client has left");
  caller.uid = kNobody;
  caller.address = remote.address().to_string();
  caller.may_use = true;
  return caller;
}

}  // namespace

bool Server::is_answered(const std::filesystem::path& socket) {
  if (!can_be_socket(socket)) return false;
  asio::io_context context(1);
  Local::socket probe(context);
  boost::system::error_code error;
  probe.connect(Local::endpoint(socket.native()), error);
  return !error;
}

Result<std::shared_ptr<Server>> Server::listen(asio::any_io_executor executor,
                                               const std::filesystem::path& socket, const std::string& group,
                                               Handler handler, Limits limits) {
  if (auto cleared = clear_leftover(socket); !cleared) {
    return cleared.take_error();
  }
  auto server = std::make_shared<LocalServer>(executor, socket, group_id(group), std::move(handler), limits);
  if (auto opened = server->open(); !opened) return opened.take_error();
  return std::shared_ptr<Server>(std::move(server));
}

Result<std::shared_ptr<Server>> Server::listen_on_address(asio::any_io_executor executor,
                                                          const std::string& address, std::uint16_t port,
                                                          Handler handler, Limits limits) {
  const std::string name = address + " port " + std::to_string(port);
  boost::system::error_code error;
  const auto ip = asio::ip::make_address(address, error);
  if (error) return fail(Errc::Invalid, "listening on " + name + ": it is no IP address");
  auto server = std::make_shared<HttpServer<Tcp>>(executor, limits, anybody, std::move(handler));
  if (auto bound = server->bind({ip, port}, name); !bound) return bound.take_error();
  if (auto listening = server->listen(name); !listening) return listening.take_error();
  return std::shared_ptr<Server>(std::move(server));
}

}  // namespace spark::api
