#include "daemon/live/views.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/text.hpp"
#include "daemon/launch.hpp"
#include "daemon/log.hpp"
#include "daemon/token.hpp"
#include "staging/view/fuse/fuse_session.hpp"

namespace spark::live {
namespace {

constexpr std::size_t kMost = 256;  // the service manager keeps as many: FileDescriptorStoreMax of the unit
constexpr std::size_t kMostOfUser = 64;
constexpr std::size_t kForRoot = 16;  // of those, in any case
const std::string kRoot = "user 0";
constexpr Duration kLook{10'000};  // a look for what an earlier daemon has left
constexpr int kTries = 3;          // to find what an earlier daemon has left

// Since 1970: a daemon's numbers are higher than those of an earlier one, however soon it follows.
std::uint64_t milliseconds_of(const Clock& clock) {
  const auto since = clock.wall().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(since).count());
}

}  // namespace

Views::Views(asio::any_io_executor executor, workers::Runner& runner, const Clock& clock,
             std::function<json::object()> request, std::function<void()> on_change, KeptDescriptors kept,
             ViewTimings timings)
    : executor_(std::move(executor)),
      runner_(runner),
      clock_(clock),
      request_(std::move(request)),
      on_change_(std::move(on_change)),
      kept_(std::move(kept)),
      server_(executor_, runner_, clock_, on_change_, kept_.manager, timings),
      newest_(milliseconds_of(clock)) {
  if (!kept_.earlier) return;
  for (const auto& [name, device] : *kept_.earlier)
    if (name.starts_with(kDescriptorName))
      newest_ =
          std::max<std::uint64_t>(newest_, std::strtoull(name.c_str() + kDescriptorName.size(), nullptr, 10));
}

ViewPtr Views::find(std::uint64_t number) const {
  const auto found = views_.find(number);
  return found == views_.end() ? nullptr : found->second;
}

std::uint64_t Views::add(const std::string& dataset, json::object demand) {
  const auto view = std::make_shared<View>();
  view->number = newest_ = std::max(newest_ + 1, milliseconds_of(clock_));
  view->dataset = dataset;
  view->request = request_();
  view->request["dataset"] = dataset;
  view->request["view"] = view->number;
  view->owner = get_text(demand, "owner");
  view->request["demand"] = std::move(demand);
  const auto room = check_room(view->owner);
  auto device = room ? staging::open_fuse_device() : spark::fail(room.error());
  if (device) view->device = std::move(*device);
  if (!device) server_.fail(*view, device.error().message());
  views_[view->number] = view;
  return view->number;
}

// Root always gets one, and one user alone can't take those of the others.
Result<> Views::check_room(const std::string& owner) const {
  std::size_t all = 0, own = 0;
  for (const auto& [number, view] : views_) {
    // It was refused, found no device, or waits for its jobs' end only.
    if (view->is_over || (!view->device && !view->has_begun)) continue;
    ++all;
    if (view->owner == owner) ++own;
  }
  if (owner == kRoot ? all < kMost : all < kMost - kForRoot && own < kMostOfUser) return {};
  return spark::fail(Errc::Unavailable, "there are " + std::to_string(all) + " live views already, " +
                                            std::to_string(own) + " of " + owner);
}

void Views::begin(std::uint64_t number) {
  const ViewPtr view = find(number);
  if (view && !view->has_begun && !view->has_failed() && !view->is_ending) start(view);
}

void Views::start(const ViewPtr& view) {
  view->has_begun = true;
  launch(executor_, subject_of(view->dataset), run(view));
}

std::string Views::folder_of(std::uint64_t number) const {
  const ViewPtr view = find(number);
  return !view || view->is_ending || view->has_failed() ? "" : view->folder;
}

std::string Views::problem_of(std::uint64_t number) const {
  const ViewPtr view = find(number);
  return view && view->has_failed() ? view->trouble : "";
}

bool Views::could_be_read(std::uint64_t number) const {
  const ViewPtr view = find(number);
  return !view || view->is_of_another_set || !view->folder.empty();
}

std::string Views::reason_of(std::uint64_t number) const {
  const ViewPtr view = find(number);
  if (!view || view->failed_files < 2) return view ? view->trouble : "";
  return view->trouble + "; " + std::to_string(view->failed_files) + " files have failed";
}

std::vector<ViewedCopy> Views::copies() const {
  std::vector<ViewedCopy> all;
  for (const auto& [number, view] : views_)
    if (view->has_begun && !view->is_over) all.push_back({view->dataset, view->generation});
  return all;
}

bool Views::has_copy_of(const std::string& dataset) const {
  return std::ranges::any_of(copies(), [&](const ViewedCopy& copy) { return copy.dataset == dataset; });
}

void Views::note_failed(std::uint64_t number, const std::string& why, bool is_whole) {
  const ViewPtr view = find(number);
  if (!view || view->has_failed()) return;
  if (!is_whole) return server_.note_failed_file(*view, why);
  view->is_of_another_set = true;
  server_.fail(*view, why);
  on_change_();
}

asio::awaitable<void> Views::run(ViewPtr view) {
  co_await server_.serve(view);
  on_change_();
  server_.cut(*view);  // reads that still wait get an error
  json::object all{{"remove", true}};
  const auto gone = co_await server_.ask(view, "end-view", std::move(all));
  if (!gone) log::survived(gone.error());
  view->is_over = true;
  if (view->is_ending) views_.erase(view->number);
  on_change_();
}

asio::awaitable<void> Views::set_failed(std::uint64_t number, std::string reason) {
  const ViewPtr view = find(number);
  if (!view || view->has_failed()) co_return;
  server_.fail(*view, reason);
  if (view->folder.empty()) co_return server_.cut(*view);
  json::object why{{"reason", reason}};
  const auto failed = co_await server_.ask(view, "end-view", std::move(why));
  if (failed) co_return;
  log::survived(failed.error());
  server_.cut(*view);
}

asio::awaitable<bool> Views::show_copy(std::uint64_t number, std::string path, std::uint64_t generation) {
  const ViewPtr view = find(number);
  if (!view || view->is_over || view->folder.empty()) co_return false;
  json::object copy{{"copy", path}};
  const auto shown = co_await server_.ask(view, "show-copy", std::move(copy));
  if (!shown) log::survived(shown.error());
  if (!shown && shown.error().kind == Errc::Refused) co_return false;
  view->generation = generation;  // also if it was not shown: the view goes on serving it
  if (shown && view->device) launch(executor_, subject_of(view->dataset), server_.drop_pages(view));
  co_return true;
}

asio::awaitable<void> Views::stop() {
  for (const auto& [number, view] : views_) view->dropping.cancel();
  co_await server_.pages_dropped();
}

asio::awaitable<void> Views::end(std::uint64_t number) {
  const ViewPtr view = find(number);
  if (!view || std::exchange(view->is_ending, true)) co_return;
  if (!view->has_begun || view->is_over) {
    views_.erase(number);
    co_return;
  }
  // Nobody can have a file of it open: its process has not said where it is.
  if (view->folder.empty()) co_return server_.cut(*view);
  json::object why{{"reason", "no job uses the live view any more"}, {"detach", true}};
  const auto ended = co_await server_.ask(view, "end-view", std::move(why));
  if (!ended) log::survived(ended.error());
  if (!ended) server_.cut(*view);
  if (view->is_over) views_.erase(number);
}

asio::awaitable<std::vector<Views::Earlier>> Views::take_over(std::string why_not) {
  json::object request = request_();
  json::array& kept = request["kept"].emplace_array();
  std::map<std::string, UniqueFd> descriptors;
  if (kept_.earlier) descriptors.swap(*kept_.earlier);
  for (const auto& [name, device] : descriptors)
    if (why_not.empty() && name.starts_with(kDescriptorName))
      kept.emplace_back(name.substr(kDescriptorName.size()));
  json::array& own = request["own"].emplace_array();
  for (const auto& [number, view] : views_) own.emplace_back(std::to_string(number));
  Result<json::object> found = json::object{};
  for (int tries = 0; tries == 0 || (!found && tries < kTries); ++tries) {
    json::object again = request;
    found = co_await runner_.ask("live views of an earlier daemon", "find-views", std::move(again), kLook);
  }
  if (!found) why_not = found.error().message();
  if (!found) log::survived(found.error());
  std::vector<Earlier> earlier;
  const json::object answer = found ? std::move(*found) : json::object();
  for (const json::object& one : objects_in(answer, "views")) {
    const auto view = std::make_shared<View>();
    view->number = get_count(one, "view");
    auto descriptor = descriptors.extract(view->descriptor_name());
    if (!descriptor) continue;
    view->dataset = get_text(one, "dataset");
    view->folder = get_text(one, "folder");
    view->request = request_();
    view->request["dataset"] = view->dataset;
    view->request["view"] = view->number;
    view->can_resend = view->is_kept = true;
    view->device = std::move(descriptor.mapped());
    views_[view->number] = view;
    newest_ = std::max(newest_, view->number);
    const json::object* noted = get_object(one, "demand");
    json::object demand = noted == nullptr ? json::object{} : *noted;
    std::string copy = get_text(one, "copy");
    view->owner = get_string(demand, "owner").value_or(kRoot);  // one of an earlier version has none
    view->generation = std::strtoull(std::filesystem::path(copy).filename().c_str(), nullptr, 10);
    view->trouble = get_text(one, "failed");
    start(view);
    if (get_bool(one, "ended").value_or(false)) {
      launch(executor_, subject_of(view->dataset), end(view->number));
    } else {
      earlier.push_back({view->number, view->dataset, std::move(copy), std::move(demand)});
    }
    log::info(subject_of(view->dataset) + " goes on");
  }
  if (why_not.empty()) why_not = "its files are not there, or not of this program";
  for (const auto& [name, device] : descriptors) {
    log::warning("a live view of an earlier daemon ends: " + why_not);
    if (kept_.manager != nullptr) kept_.manager->forget(name);
  }
  co_return earlier;
}

}  // namespace spark::live
