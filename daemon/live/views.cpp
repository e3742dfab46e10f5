#include "daemon/live/views.hpp"

#include <fcntl.h>

#include <cerrno>
#include <filesystem>
#include <optional>

#include "base/text.hpp"
#include "daemon/backoff.hpp"
#include "daemon/launch.hpp"
#include "daemon/log.hpp"
#include "daemon/timer.hpp"
#include "daemon/token.hpp"

namespace spark::live {
namespace {

const std::string kName = "live-";  // of a descriptor, followed by the dataset's
constexpr Duration kShort{10'000};  // what a worker does to a view

std::string subject_of(const std::string& dataset) {
  return "the live view of " + printable(dataset);
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
      timings_(timings) {}

// By the folder, whose name is plain ASCII.
std::string Views::View::name() const {
  return kName + std::filesystem::path(folder).filename().native() + "." + set;
}

void Views::begin(const std::string& dataset) {
  if (views_.contains(dataset)) return;
  const auto view = std::make_shared<View>();
  view->dataset = dataset;
  view->request = request_();
  view->request["dataset"] = dataset;
  view->device.reset(::open("/dev/fuse", O_RDWR | O_CLOEXEC));
  if (!view->device)
    view->problem =
        fail_errno(errno, "opening /dev/fuse", "a live view needs it: `modprobe fuse`").value().message();
  views_[dataset] = view;
  launch(executor_, subject_of(dataset), run(view));
}

std::string Views::folder_of(const std::string& dataset) const {
  const auto found = views_.find(dataset);
  if (found == views_.end() || found->second->is_ending || !found->second->problem.empty()) return "";
  return found->second->folder;
}

void Views::note_failed(const std::string& dataset, const std::string& why, bool is_whole) {
  const auto found = views_.find(dataset);
  if (found == views_.end() || found->second->is_ending) return;
  View& view = *found->second;
  std::string& reason = is_whole ? view.problem : view.failed_file;
  if (!is_whole) ++view.failed_files;
  if (reason.empty()) log::warning(subject_of(dataset) + ": " + why);
  if (reason.empty()) reason = why;
  on_change_();
}

std::string Views::reason_of(const std::string& dataset) const {
  const auto found = views_.find(dataset);
  if (found == views_.end() || found->second->is_ending) return "";
  const View& view = *found->second;
  if (!view.problem.empty() || view.failed_files < 2)
    return view.problem.empty() ? view.failed_file : view.problem;
  return view.failed_file + "; " + std::to_string(view.failed_files) + " files have failed";
}

std::string Views::problem_of(const std::string& dataset) const {
  const auto found = views_.find(dataset);
  return found == views_.end() || found->second->is_ending ? "" : found->second->problem;
}

asio::awaitable<void> Views::run(ViewPtr view) {
  if (view->problem.empty()) co_await serve(view);
  if (!view->problem.empty()) log::warning(subject_of(view->dataset) + ": " + view->problem);
  on_change_();
  view->device.reset();  // reads that still wait get an error
  forget(*view);
  json::object more{{"set", view->set}};
  const auto gone = co_await ask(view, "forget-view", std::move(more));
  if (!gone) log::survived(gone.error());
  view->is_over = true;
  // One that has failed stays known until its job has ended.
  if (view->problem.empty() || view->is_ending) views_.erase(view->dataset);
  on_change_();
}

void Views::forget(View& view) const {
  if (std::exchange(view.is_kept, false) && kept_.forget) kept_.forget(view.name());
}

// Its map can't say so: the connection ends with the last of its holders, and all readers get an error.
void Views::cut(View& view) const {
  view.device.reset();
  forget(view);
  view.cancellation.cancel();
}

// Until no program uses the view, or no process can answer for it.
asio::awaitable<void> Views::serve(ViewPtr view) {
  Backoff backoff(timings_.retry, timings_.longest_retry, clock_);
  Timer pause(executor_);
  std::optional<SteadyTime> without;  // since when no process has answered
  for (;;) {
    std::optional<SteadyTime> begun_at;
    workers::Call call;
    call.verb = "serve-view";
    call.subject = subject_of(view->dataset);
    call.request = view->request;
    call.request["taken_over"] = !view->folder.empty();
    call.request["set"] = view->set;
    call.descriptor = view->device.get();
    call.on_progress = [this, view, &begun_at](const json::object& begun) {
      begun_at = clock_.steady();
      view->folder = get_string(begun, "folder").value_or("");
      view->set = get_string(begun, "set").value_or("");
      view->can_resend = get_bool(begun, "can_resend").value_or(false);
      if (!std::exchange(view->is_kept, true) && view->can_resend && kept_.keep)
        kept_.keep(view->name(), view->device.get());
      on_change_();
    };
    const auto ended = co_await runner_.run(std::move(call), view->cancellation);
    if (ended || view->cancellation.is_asked()) co_return;
    const bool has_begun = !view->folder.empty();
    // The map of this view went with an earlier one: the request waits until the copy is complete.
    if (!has_begun && ended.error().kind == Errc::NotFound) co_return log::survived(ended.error());
    if (!has_begun || !view->can_resend) {
      view->problem = ended.error().message();
      co_return;
    }
    // One that dies of a request would get it again, and again.
    if (begun_at && clock_.steady() - *begun_at >= timings_.lived) {
      without.reset();
      backoff.reset();
    }
    if (!without) without = clock_.steady();
    if (clock_.steady() - *without > timings_.without) {
      view->problem = "no process could be started for it: " + ended.error().message();
      co_return;
    }
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
  co_return done ? Result<>() : fail(done.error());
}

asio::awaitable<void> Views::set_failed(std::string dataset, std::string reason) {
  const auto found = views_.find(dataset);
  if (found == views_.end() || !found->second->problem.empty()) co_return;
  const ViewPtr view = found->second;
  view->problem = reason;
  log::warning(subject_of(dataset) + " has failed: " + reason);
  json::object more{{"reason", reason}, {"set", view->set}};
  const auto failed = co_await ask(view, "fail-view", std::move(more));
  if (failed) co_return;
  log::survived(failed.error());
  cut(*view);
}

asio::awaitable<void> Views::show_copy(std::string dataset, std::string copy) {
  const auto found = views_.find(dataset);
  if (found == views_.end() || found->second->folder.empty()) co_return;
  json::object more{{"copy", copy}};
  const auto shown = co_await ask(found->second, "show-copy", std::move(more));
  if (!shown) log::survived(shown.error());  // the view goes on serving it
}

asio::awaitable<void> Views::end(std::string dataset) {
  const auto found = views_.find(dataset);
  if (found == views_.end() || found->second->is_ending) co_return;
  const ViewPtr view = found->second;
  view->is_ending = true;
  json::object more{{"reason", "no job uses the live view any more"}, {"set", view->set}};
  const auto ended = co_await ask(view, "end-view", std::move(more));
  if (!ended) log::survived(ended.error());
  if (!ended) cut(*view);
  const auto still = views_.find(dataset);
  if (view->is_over && still != views_.end() && still->second == view) views_.erase(still);
}

asio::awaitable<std::vector<Views::Earlier>> Views::take_over(std::string why_not) {
  json::object request = request_();
  json::array& kept = request["kept"].emplace_array();
  if (kept_.earlier) {
    for (const auto& [name, descriptor] : *kept_.earlier) {
      if (!name.starts_with(kName)) continue;
      if (why_not.empty()) kept.emplace_back(name.substr(kName.size()));
      if (!why_not.empty()) log::warning("a live view of an earlier daemon ends: " + why_not);
    }
  }
  const auto found =
      co_await runner_.ask("live views of an earlier daemon", "find-views", std::move(request), kShort);
  std::vector<Earlier> earlier;
  if (!found) log::survived(found.error());
  const json::array* views = found ? get_array(*found, "views") : nullptr;
  for (std::size_t i = 0; views != nullptr && i < views->size(); ++i) {
    const json::object& one = (*views)[i].as_object();
    const auto view = std::make_shared<View>();
    view->dataset = get_string(one, "dataset").value_or("");
    view->folder = get_string(one, "folder").value_or("");
    view->set = get_string(one, "set").value_or("");
    view->request = request_();
    view->request["dataset"] = view->dataset;
    view->can_resend = view->is_kept = true;
    view->device = std::move((*kept_.earlier)[view->name()]);
    views_[view->dataset] = view;
    launch(executor_, subject_of(view->dataset), run(view));
    earlier.push_back({view->dataset, get_bool(one, "published").value_or(false)});
    log::info(subject_of(view->dataset) + " goes on");
  }
  // The connection of any other view ends.
  if (kept_.earlier && kept_.forget)
    for (auto& [name, descriptor] : *kept_.earlier)
      if (descriptor) kept_.forget(name);
  if (kept_.earlier) kept_.earlier->clear();
  co_return earlier;
}

}  // namespace spark::live
