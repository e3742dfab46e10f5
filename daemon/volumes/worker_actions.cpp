#include "daemon/volumes/worker_actions.hpp"

#include <sys/utsname.h>

#include "daemon/log.hpp"
#include "daemon/volumes/status.hpp"
#include "daemon/workers/messages.hpp"
#include "daemon/workers/wire.hpp"
#include "nvmetcp/device/device_io.hpp"
#include "nvmetcp/security/path_security.hpp"

namespace spark::volumes {
namespace {

// Each is longer than the kernel's own patience for that call on a healthy day: past it, something hangs.
constexpr Duration kFabric{
    45'000};  // one connect: SYN retries, and 10 s for each of up to 8 queues to answer
constexpr Duration kResolve{20'000};  // a name service that is away, asked twice or thrice
constexpr Duration kTimers{10'000};   // three attributes of sysfs, or one
constexpr Duration kSuperblock{10'000};
constexpr Duration kMount{120'000};   // a journal to replay, or multi-mount protection to wait out
constexpr Duration kUnmount{60'000};  // a writer's dirty pages to flush
constexpr Duration kUsers{30'000};    // every process of the host is looked at
constexpr Duration kDetach{kUsers + Duration(10'000)};
constexpr Duration kDetachNfs{10'000};  // beyond it, it waits for its server with what is dirty
constexpr Duration kProbe{5'000};
constexpr Duration kMountedState{2'000};  // from memory
constexpr Duration kReservation{15'000};  // three or four commands, each answered at once by a healthy target
constexpr Duration kSmart{10'000};
constexpr Duration kStopWriting{20'000};
constexpr Duration kPublish{900'000};  // everything that is dirty, over the network
constexpr Duration kRecord{30'000};    // a small file on the system's own drive

std::optional<json::object> read_record(const std::filesystem::path& file) {
  const auto text = read_file(file);
  if (!text) return std::nullopt;
  auto object = parse_json_object(*text);
  if (object) return std::move(*object);
  log::survived(Error{Errc::Failed, "what was recorded in " + file.native() + " can't be understood", ""});
  return std::nullopt;
}

json::object pin_to_json(const FilesystemIdentity& identity) {
  return {{"type", identity.type},
          {"uuid", identity.uuid},
          {"bytes", identity.bytes},
          {"namespace_id", identity.namespace_id},
          {"stamp", static_cast<std::int64_t>(identity.stamp)},
          {"is_published", identity.is_published}};
}

std::optional<FilesystemIdentity> read_pin(const std::filesystem::path& file) {
  const auto object = read_record(file);
  if (!object) return std::nullopt;
  return FilesystemIdentity{get_string(*object, "type").value_or(""),
                            get_string(*object, "uuid").value_or(""),
                            static_cast<Bytes>(get_int(*object, "bytes").value_or(0)),
                            get_string(*object, "namespace_id").value_or(""),
                            static_cast<std::uint64_t>(get_int(*object, "stamp").value_or(0)),
                            get_bool(*object, "is_published").value_or(false)};
}

}  // namespace

WorkerActions::WorkerActions(workers::Runner& runner, Sight& sight, const std::string& volume,
                             const std::filesystem::path& folder, std::function<bool()> shared,
                             TargetAt target_at)
    : runner_(runner),
      sight_(sight),
      subject_("volume " + volume),
      mount_subject_("the mount of volume " + volume),
      pin_file_(folder / (volume + ".json")),
      history_file_(folder / (volume + ".history.json")),
      intent_file_(folder / (volume + ".intent.json")),
      guards_(folder.parent_path() / mounts::kGuardRecords),
      shared_(std::move(shared)),
      target_at_(std::move(target_at)),
      pinned_(read_pin(pin_file_)) {}

asio::awaitable<Result<json::object>> WorkerActions::ask(std::string verb, json::object request,
                                                         Duration deadline) {
  co_return co_await runner_.ask(subject_, std::move(verb), std::move(request), deadline);
}

asio::awaitable<Result<json::object>> WorkerActions::act(std::string verb, json::object request,
                                                         Duration deadline) {
  auto answer = co_await ask(std::move(verb), std::move(request), deadline);
  sight_.forget();
  co_return answer;
}

asio::awaitable<Result<json::object>> WorkerActions::act_jointly(std::string subject, std::string verb,
                                                                 json::object request, Duration deadline) {
  auto answer =
      co_await runner_.ask_jointly(std::move(subject), std::move(verb), std::move(request), deadline);
  sight_.forget();
  co_return answer;
}

asio::awaitable<Result<nvmetcp::DiscoveryLog>> WorkerActions::discover(nvmetcp::Portal portal,
                                                                       std::string interface) {
  json::object request{{"portal", to_message(portal)}, {"interface", interface}};
  // Volumes of one target ask it together, and its log is about none of them.
  std::string target = "target " + portal_text(portal);
  auto answer = co_await act_jointly(std::move(target), "discover", std::move(request), kFabric);
  co_return workers::message_of<nvmetcp::DiscoveryLog>(std::move(answer));
}

asio::awaitable<Result<nvmetcp::Connection>> WorkerActions::connect(std::string subsystem,
                                                                    nvmetcp::Portal portal,
                                                                    nvmetcp::ConnectOptions options) {
  json::object request{
      {"subsystem", subsystem}, {"portal", to_message(portal)}, {"options", to_message(options)}};
  // Volumes of one subsystem share its connection: the first makes it, the others find it. A portal that
  // hangs says nothing of a volume whose other path works.
  std::string target = "target " + portal_text(portal);
  auto answer = co_await act_jointly(std::move(target), "connect", std::move(request), kFabric);
  co_return workers::message_of<nvmetcp::Connection>(std::move(answer));
}

asio::awaitable<Result<std::vector<nvmetcp::Portal>>> WorkerActions::resolve(nvmetcp::Portal portal) {
  json::object request{{"portal", to_message(portal)}};
  std::string target = "target " + portal_text(portal);
  const auto answer =
      co_await runner_.ask_jointly(std::move(target), "resolve", std::move(request), kResolve);
  if (!answer) co_return fail(answer.error());
  std::vector<nvmetcp::Portal> numeric;
  if (const json::array* addresses = get_array(*answer, "addresses")) {
    for (const json::value& one : *addresses) {
      if (one.is_string()) numeric.push_back({std::string(one.get_string()), portal.port});
    }
  }
  co_return numeric;
}

asio::awaitable<Result<>> WorkerActions::set_timers(std::string controller, std::string subsystem,
                                                    nvmetcp::ConnectOptions options) {
  json::object request{
      {"controller", controller}, {"subsystem", subsystem}, {"options", to_message(options)}};
  const auto answer = co_await act("timers", std::move(request), kTimers);
  if (!answer) co_return fail(answer.error());
  co_return Result<>{};
}

asio::awaitable<Result<>> WorkerActions::rescan(std::string controller, std::string subsystem) {
  json::object request{{"controller", controller}, {"subsystem", subsystem}};
  const auto answer = co_await act("rescan", std::move(request), kTimers);
  if (!answer) co_return fail(answer.error());
  co_return Result<>{};
}

asio::awaitable<Result<Change>> WorkerActions::disconnect(std::string controller, std::string subsystem,
                                                          nvmetcp::Users users) {
  json::object request{
      {"controller", controller}, {"subsystem", subsystem}, {"cut_off", users == nvmetcp::Users::CutOff}};
  auto answer = co_await act("disconnect", std::move(request), kFabric);
  co_return answer.map(workers::change_from_json);
}

asio::awaitable<Result<mounts::Superblock>> WorkerActions::read_superblock(std::string device) {
  json::object request{{"device", device}};
  auto answer = co_await ask("superblock", std::move(request), kSuperblock);
  co_return workers::message_of<mounts::Superblock>(std::move(answer));
}

asio::awaitable<Result<Mounted>> WorkerActions::mount(mounts::MountRequest wanted,
                                                      FilesystemIdentity identity) {
  json::object request{{"mount", to_message(wanted)}, {"host", node_name()}};
  const bool pin = !identity.uuid.empty();
  if (pin) {
    request["pin_file"] = pin_file_.native();
    request["pin"] = pin_to_json(identity);
  }
  auto answer = co_await act("mount", std::move(request), kMount);
  if (!answer) co_return answer.take_error();
  if (pin) pinned_ = identity;
  co_return Mounted{workers::change_from_json(*answer), get_string(*answer, "users").value_or("")};
}

asio::awaitable<Result<mounts::Guard>> WorkerActions::guard(std::filesystem::path mount_point,
                                                            bool is_in_use) {
  json::object request{
      {"mount_point", mount_point.native()}, {"records", guards_.native()}, {"is_in_use", is_in_use}};
  auto answer = co_await ask("guard", std::move(request), kRecord);
  co_return workers::message_of<mounts::Guard>(std::move(answer));
}

asio::awaitable<Result<Unmounted>> WorkerActions::unmount(std::filesystem::path target, bool detach) {
  json::object request{{"target", target.native()}, {"detach", detach}};
  // Somebody may mount something else there before the worker gets to it.
  const auto seen = mount_at(target);
  const bool is_there = seen && *seen;
  if (is_there) request["seen"] = (*seen)->device_number;
  const Duration detaching = is_there && (*seen)->type.starts_with("nfs") ? kDetachNfs : kDetach;
  auto answer = co_await act("unmount", std::move(request), detach ? detaching : kUnmount);
  if (!answer) co_return answer.take_error();
  co_return Unmounted{workers::change_from_json(*answer), get_string(*answer, "users").value_or("")};
}

asio::awaitable<Result<std::string>> WorkerActions::users(std::filesystem::path target) {
  json::object request{{"target", target.native()}};
  const auto answer = co_await ask("users", std::move(request), kUsers);
  if (!answer) co_return fail(answer.error());
  co_return get_string(*answer, "users").value_or("");
}

asio::awaitable<Result<ProbeAnswer>> WorkerActions::probe(ProbeRequest wanted) {
  json::object request{{"path", wanted.target.native()}, {"device", wanted.device}};
  if (const auto& keep = wanted.keep_reservation)
    request["keep_reservation"] = json::object{{"subsystem", keep->subsystem}, {"nsid", keep->nsid}};
  auto answer = co_await ask("probe", std::move(request), kProbe);
  if (!answer) co_return answer.take_error();
  ProbeAnswer probed;
  probed.us = get_double(*answer, "us").value_or(0);
  probed.uuid = get_string(*answer, "uuid").value_or("");
  probed.shut_down = get_bool(*answer, "shut_down").value_or(false);
  probed.being_written = get_bool(*answer, "being_written").value_or(false);
  probed.stamp = static_cast<std::uint64_t>(get_int(*answer, "stamp").value_or(0));
  probed.mmp_node = get_string(*answer, "mmp_node").value_or("");
  if (get_object(*answer, "reservation") != nullptr) {
    auto holding = workers::member_of<nvmetcp::Holding>(*answer, "reservation");
    if (!holding) co_return holding.take_error();
    probed.holding = std::move(*holding);
  }
  co_return probed;
}

asio::awaitable<Result<mounts::MountedState>> WorkerActions::mounted_state(std::filesystem::path target) {
  if (runner_.abandoned().contains(mount_subject_))
    co_return fail(Errc::Unavailable, "a question to the file system on " + target.native() + " still waits");
  json::object request{{"target", target.native()}};
  const auto answer =
      co_await runner_.ask(mount_subject_, "mounted-state", std::move(request), kMountedState);
  if (!answer) co_return fail(answer.error());
  mounts::MountedState state;
  state.is_shut_down = get_bool(*answer, "shut_down").value_or(false);
  state.uuid = get_string(*answer, "uuid").value_or("");
  state.damage = get_string(*answer, "damage").value_or("");
  if (const json::object* published = get_object(*answer, "published"))
    state.published = mounts::published_from_json(*published);
  co_return state;
}

asio::awaitable<Result<nvmetcp::Holding>> WorkerActions::reservation(ReservationRequest wanted) {
  static constexpr const char* kActs[] = {"look", "hold", "take", "release"};
  json::object request{{"act", kActs[static_cast<std::size_t>(wanted.act)]},
                       {"device", wanted.device},
                       {"subsystem", wanted.of.subsystem},
                       {"nsid", wanted.of.nsid}};
  auto answer = co_await act("reservation", std::move(request), kReservation);
  co_return workers::message_of<nvmetcp::Holding>(std::move(answer));
}

asio::awaitable<Result<nvmetcp::Smart>> WorkerActions::smart(std::string controller) {
  json::object request{{"controller", controller}};
  auto answer = co_await ask("smart", std::move(request), kSmart);
  co_return workers::message_of<nvmetcp::Smart>(std::move(answer));
}

asio::awaitable<Result<>> WorkerActions::stop_writing(std::filesystem::path target, std::string device) {
  json::object request{{"target", target.native()}, {"device", device}};
  const auto answer = co_await act("stop-writing", std::move(request), kStopWriting);
  if (!answer) co_return fail(answer.error());
  co_return Result<>{};
}

asio::awaitable<Result<>> WorkerActions::pin(FilesystemIdentity identity) {
  json::object request{{"file", pin_file_.native()}, {"content", pin_to_json(identity)}};
  const auto saved = co_await ask("record", std::move(request), kRecord);
  if (!saved) co_return fail(saved.error());
  pinned_ = std::move(identity);
  co_return Result<>{};
}

asio::awaitable<Result<mounts::Closed>> WorkerActions::publish(std::filesystem::path target,
                                                               std::string device, mounts::AfterPublish then,
                                                               bool alone) {
  json::object request{{"target", target.native()},
                       {"device", device},
                       {"host", node_name()},
                       {"then_write", then == mounts::AfterPublish::Writable},
                       {"alone", alone}};
  const auto answer = co_await act("publish", std::move(request), kPublish);
  if (!answer) co_return fail(answer.error());
  const auto published = mounts::published_from_json(*answer);
  if (!published) co_return fail(Errc::Failed, "publish worker: an answer that makes no sense");
  const mounts::Closed closed{*published, static_cast<std::uint64_t>(get_int(*answer, "stamp").value_or(0))};
  if (then == mounts::AfterPublish::ReadOnly) {
    auto identity = pinned_.value_or(FilesystemIdentity{});
    identity.is_published = true;
    identity.stamp = closed.stamp;
    const auto pinned = co_await pin(std::move(identity));
    if (!pinned) log::survived(pinned.error());
  }
  co_return closed;
}

// Unpinned first: what is cut short in between is what the configuration says.
asio::awaitable<Result<>> WorkerActions::make_writable(std::filesystem::path target, std::string device,
                                                       bool alone) {
  auto identity = pinned_.value_or(FilesystemIdentity{});
  identity.is_published = false;
  auto pinned = co_await pin(std::move(identity));
  if (!pinned || device.empty()) co_return pinned;
  json::object request{
      {"target", target.native()}, {"device", device}, {"host", node_name()}, {"alone", alone}};
  const auto answer = co_await act("make-writable", std::move(request), kMount);
  if (!answer) co_return fail(answer.error());
  co_return Result<>{};
}

Result<Intent> WorkerActions::saved_intent() {
  const auto text = read_file(intent_file_);
  if (!text && text.error().kind == Errc::NotFound) return Intent{};
  if (!text) return text.take_error();
  const auto object = parse_json_object(*text);
  auto intent = object ? intent_from_json(*object) : Result<Intent>(fail(object.error()));
  if (!intent) return fail_with(std::move(intent.error()), intent_file_.native());
  return intent;
}

asio::awaitable<Result<>> WorkerActions::save_intent(Intent intent) {
  json::object request{{"file", intent_file_.native()}, {"content", to_json(intent)}};
  const auto saved = co_await ask("record", std::move(request), kRecord);
  if (!saved) co_return fail(saved.error());
  co_return Result<>{};
}

std::optional<std::uint64_t> WorkerActions::completed_io(const std::string& device) {
  std::vector<std::string> controllers;
  if (const auto& all = sight_.controllers()) {
    for (const nvmetcp::Controller& controller : *all) controllers.push_back(controller.name);
  }
  return nvmetcp::completed_io(SystemRoot{}, std::filesystem::path(device).filename(), controllers);
}

json::object WorkerActions::saved_history() {
  return read_record(history_file_).value_or(json::object{});
}

asio::awaitable<void> WorkerActions::save_history(json::object history) {
  json::object request{{"file", history_file_.native()}, {"content", std::move(history)}};
  const auto saved = co_await ask("record", std::move(request), kRecord);
  if (!saved) log::survived(saved.error());
}

Result<nvmetcp::HostIdentity> WorkerActions::host_identity() {
  return sight_.host();
}

std::string WorkerActions::node_name() {
  struct utsname names {};
  return ::uname(&names) == 0 ? names.nodename : "";
}

Result<std::vector<nvmetcp::Controller>> WorkerActions::controllers(const std::string& subsystem) {
  const auto& all = sight_.controllers();
  if (!all) return all;
  const auto& host = sight_.host();
  return addresses_.ours(nvmetcp::controllers_of(*all, subsystem, host ? host->nqn : ""));
}

std::vector<nvmetcp::Controller> WorkerActions::strangers(const std::string& subsystem) {
  const auto& all = sight_.controllers();
  if (!all) return {};
  const auto& host = sight_.host();
  return addresses_.strangers(nvmetcp::controllers_of(*all, subsystem, host ? host->nqn : ""));
}

Result<> WorkerActions::check_paths_secured(const std::string& subsystem,
                                            const nvmetcp::ConnectOptions& options) {
  const auto paths = controllers(subsystem);
  if (!paths) return paths.take_error();
  return nvmetcp::check_paths_secured(SystemRoot{}, *paths, options);
}

Result<nvmetcp::Namespace> WorkerActions::find_namespace(const std::string& subsystem, std::uint32_t nsid) {
  const auto through = controllers(subsystem);
  if (!through) return through.take_error();
  return sight_.find_namespace(*through, subsystem, nsid);
}

Result<nvmetcp::Namespace> WorkerActions::find_namespace_below(
    const std::vector<nvmetcp::Controller>& controllers, std::uint32_t nsid) {
  if (controllers.empty()) return fail(Errc::NotFound, "no controller is connected");
  return sight_.find_namespace(controllers, controllers.front().subsystem, nsid);
}

Result<std::string> WorkerActions::subsystem_of_device(dev_t device) {
  return sight_.subsystem_of_device(device);
}

const Result<std::vector<mounts::Mount>>& WorkerActions::mount_table() {
  return sight_.mounts();
}

}  // namespace spark::volumes
