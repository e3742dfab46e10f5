#include "daemon/live/views.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "base/text.hpp"
#include "daemon/backoff.hpp"
#include "daemon/launch.hpp"
#include "daemon/log.hpp"
#include "daemon/timer.hpp"
#include "daemon/token.hpp"
#include "staging/view/fuse/fuse_session.hpp"

namespace spark::live {
namespace {

const std::string kName = "live-";  // of a descriptor, followed by the view's number
constexpr Duration kShort{10'000};  // what a worker does to a view
constexpr std::size_t kMost = 256;  // the service manager keeps as many: FileDescriptorStoreMax of the unit
constexpr std::size_t kMostOfUser = 64;
constexpr std::size_t kForRoot = 16;  // of those, in any case
const std::string kRoot = "user 0";
constexpr Duration kBetweenLooks{10};
constexpr int kTries = 3;  // to find what an earlier daemon has left

std::string subject_of(const std::string& dataset) {
  return "the live view of " + printable(dataset);
}

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
      timings_(timings),
      newest_(milliseconds_of(clock)) {
  if (!kept_.earlier) return;
  for (const auto& [name, device] : *kept_.earlier)
    if (name.starts_with(kName))
      newest_ = std::max<std::uint64_t>(newest_, std::strtoull(name.c_str() + kName.size(), nullptr, 10));
}

std::string Views::View::name() const {
  return kName + std::to_string(number);
}

Views::ViewPtr Views::find(std::uint64_t number) const {
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
  if (!device) fail(*view, device.error().message());
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

void Views::fail(View& view, const std::string& why) const {
  if (view.has_failed()) return;
  view.trouble = why;
  view.failed_files = 0;
  log::warning(subject_of(view.dataset) + ": " + why);
}

void Views::note_failed(std::uint64_t number, const std::string& why, bool is_whole) {
  const ViewPtr view = find(number);
  if (!view || view->has_failed()) return;
  if (is_whole) {
    view->is_of_another_set = true;
    fail(*view, why);
  } else if (++view->failed_files == 1) {
    view->trouble = why;
    log::warning(subject_of(view->dataset) + ": " + why);
  } else {
    return;  // there may be millions
  }
  on_change_();
}

asio::awaitable<void> Views::run(ViewPtr view) {
  co_await serve(view);
  on_change_();
  cut(*view);  // reads that still wait get an error
  json::object all{{"remove", true}};
  const auto gone = co_await ask(view, "end-view", std::move(all));
  if (!gone) log::survived(gone.error());
  view->is_over = true;
  if (view->is_ending) views_.erase(view->number);
  on_change_();
}

// Its map can't say so: the connection ends with the last of its holders, and all readers get an error.
void Views::cut(View& view) const {
  view.device.reset();
  if (std::exchange(view.is_kept, false) && kept_.manager != nullptr) kept_.manager->forget(view.name());
  view.cancellation.cancel();
  view.dropping.cancel();
}

// What its process says: {"folder", "can_resend"} once it answers.
void Views::note(View& view, const json::object& progress) {
  view.folder = get_text(progress, "folder");
  view.can_resend = get_bool(progress, "can_resend").value_or(false);
  if (!std::exchange(view.is_kept, true) && view.can_resend && kept_.manager != nullptr)
    kept_.manager->keep(view.name(), view.device.get());
  on_change_();
}

// Until no program uses the view, or no process can answer for it.
asio::awaitable<void> Views::serve(ViewPtr view) {
  Backoff backoff(timings_.retry, timings_.longest_retry, clock_);
  Timer pause(executor_);
  std::optional<SteadyTime> without;  // since when no process has answered
  while (!view->cancellation.is_asked()) {
    std::optional<SteadyTime> begun_at;
    workers::Call call{"serve-view", subject_of(view->dataset), view->request};
    call.request["taken_over"] = !view->folder.empty();
    call.descriptor = view->device.get();
    call.on_progress = [this, view, &begun_at](const json::object& progress) {
      const auto why = get_string(progress, "view_failed");
      if (why) return note_failed(view->number, *why, false);
      begun_at = clock_.steady();
      note(*view, progress);
    };
    const auto ended = co_await runner_.run(std::move(call), view->cancellation);
    if (view->cancellation.is_asked()) co_return;
    if (ended && !view->is_ending) fail(*view, "its file system was unmounted, or its connection aborted");
    if (ended) co_return;
    if (view->folder.empty() || !view->can_resend) co_return fail(*view, ended.error().message());
    // One that dies of a request would get it again, and again.
    if (begun_at && clock_.steady() - *begun_at >= timings_.lived) {
      without.reset();
      backoff.reset();
    }
    if (!without) without = clock_.steady();
    if (clock_.steady() - *without > timings_.without)
      co_return fail(*view, "no process could be started for it: " + ended.error().message());
    log::warning(subject_of(view->dataset) + ": " + ended.error().message() +
                 "; its readers wait for the next process");
    pause.expires_after(backoff.next());
    if (!co_await pause.wait()) co_return;
  }
}

asio::awaitable<Result<>> Views::ask(ViewPtr view, std::string verb, json::object more) {
  json::object request = view->request;
  for (auto& [key, value] : more) request[key] = value;
  const auto done =
      co_await runner_.ask(subject_of(view->dataset), std::move(verb), std::move(request), kShort);
  co_return done ? Result<>() : spark::fail(done.error());
}

asio::awaitable<void> Views::set_failed(std::uint64_t number, std::string reason) {
  const ViewPtr view = find(number);
  if (!view || view->has_failed()) co_return;
  fail(*view, reason);
  if (view->folder.empty()) co_return cut(*view);
  json::object why{{"reason", reason}};
  const auto failed = co_await ask(view, "end-view", std::move(why));
  if (failed) co_return;
  log::survived(failed.error());
  cut(*view);
}

asio::awaitable<bool> Views::show_copy(std::uint64_t number, std::string path, std::uint64_t generation) {
  const ViewPtr view = find(number);
  if (!view || view->is_over || view->folder.empty()) co_return false;
  json::object copy{{"copy", path}};
  const auto shown = co_await ask(view, "show-copy", std::move(copy));
  if (!shown) log::survived(shown.error());
  if (!shown && shown.error().kind == Errc::Refused) co_return false;
  view->generation = generation;  // also if it was not shown: the view goes on serving it
  if (shown && view->device) launch(executor_, subject_of(view->dataset), drop_pages(view));
  co_return true;
}

// Beside the view's process: the kernel waits for a page that is being read, and only that process ends the
// wait.
asio::awaitable<void> Views::drop_pages(ViewPtr view) {
  workers::Call call{"drop-pages", subject_of(view->dataset), view->request};
  call.descriptor = view->device.get();
  view->is_dropping = true;
  const auto dropped = co_await runner_.run(std::move(call), view->dropping);
  view->is_dropping = false;
  if (!dropped && !view->dropping.is_asked()) log::survived(dropped.error());
}

asio::awaitable<void> Views::stop() {
  for (const auto& [number, view] : views_) view->dropping.cancel();
  Timer pause(executor_);
  const auto is_dropping = [](const auto& one) { return one.second->is_dropping; };
  while (std::ranges::any_of(views_, is_dropping)) {
    pause.expires_after(kBetweenLooks);
    if (!co_await pause.wait()) co_return;
  }
}

asio::awaitable<void> Views::end(std::uint64_t number) {
  const ViewPtr view = find(number);
  if (!view || std::exchange(view->is_ending, true)) co_return;
  if (!view->has_begun || view->is_over) {
    views_.erase(number);
    co_return;
  }
  // Nobody can have a file of it open: its process has not said where it is.
  if (view->folder.empty()) co_return cut(*view);
  json::object why{{"reason", "no job uses the live view any more"}, {"detach", true}};
  const auto ended = co_await ask(view, "end-view", std::move(why));
  if (!ended) log::survived(ended.error());
  if (!ended) cut(*view);
  if (view->is_over) views_.erase(number);
}

asio::awaitable<std::vector<Views::Earlier>> Views::take_over(std::string why_not) {
  json::object request = request_();
  json::array& kept = request["kept"].emplace_array();
  std::map<std::string, UniqueFd> descriptors;
  if (kept_.earlier) descriptors.swap(*kept_.earlier);
  for (const auto& [name, device] : descriptors)
    if (why_not.empty() && name.starts_with(kName)) kept.emplace_back(name.substr(kName.size()));
  Result<json::object> found = json::object{};
  for (int tries = 0; tries == 0 || (!found && tries < kTries); ++tries) {
    json::object again = request;
    found = co_await runner_.ask("live views of an earlier daemon", "find-views", std::move(again), kShort);
  }
  if (!found) why_not = found.error().message();
  if (!found) log::survived(found.error());
  std::vector<Earlier> earlier;
  const json::object answer = found ? std::move(*found) : json::object();
  for (const json::object& one : objects_in(answer, "views")) {
    const auto view = std::make_shared<View>();
    view->number = get_count(one, "view");
    auto descriptor = descriptors.extract(view->name());
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
