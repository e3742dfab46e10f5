#include "daemon/live/view_server.hpp"

#include <optional>
#include <utility>

#include "base/text.hpp"
#include "daemon/backoff.hpp"
#include "daemon/log.hpp"
#include "daemon/timer.hpp"
#include "daemon/token.hpp"

namespace spark::live {
namespace {

constexpr Duration kShort{10'000};  // what a worker does to a view

}  // namespace

std::string subject_of(const std::string& dataset) {
  return "the live view of " + printable(dataset);
}

void ViewServer::fail(View& view, const std::string& why) const {
  if (view.has_failed()) return;
  view.trouble = why;
  view.failed_files = 0;
  log::warning(subject_of(view.dataset) + ": " + why);
}

void ViewServer::note_failed_file(View& view, const std::string& why) const {
  if (view.has_failed() || ++view.failed_files > 1) return;  // there may be millions
  view.trouble = why;
  log::warning(subject_of(view.dataset) + ": " + why);
  on_change_();
}

void ViewServer::cut(View& view) const {
  view.device.reset();
  if (std::exchange(view.is_kept, false) && manager_ != nullptr) manager_->forget(view.descriptor_name());
  view.cancellation.cancel();
  view.dropping.cancel();
}

// What its process says: {"folder", "can_resend"} once it answers.
void ViewServer::note(View& view, const json::object& progress) const {
  view.folder = get_text(progress, "folder");
  view.can_resend = get_bool(progress, "can_resend").value_or(false);
  if (!std::exchange(view.is_kept, true) && view.can_resend && manager_ != nullptr)
    manager_->keep(view.descriptor_name(), view.device.get());
  on_change_();
}

asio::awaitable<void> ViewServer::serve(ViewPtr view) {
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
      if (why) return note_failed_file(*view, *why);
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

asio::awaitable<Result<>> ViewServer::ask(ViewPtr view, std::string verb, json::object more) {
  json::object request = view->request;
  for (auto& [key, value] : more) request[key] = value;
  const auto done =
      co_await runner_.ask(subject_of(view->dataset), std::move(verb), std::move(request), kShort);
  co_return done ? Result<>() : spark::fail(done.error());
}

asio::awaitable<void> ViewServer::drop_pages(ViewPtr view) {
  workers::Call call{"drop-pages", subject_of(view->dataset), view->request};
  call.descriptor = view->device.get();
  ++dropping_;
  const auto dropped = co_await runner_.run(std::move(call), view->dropping);
  --dropping_;
  dropped_.notify();
  if (!dropped && !view->dropping.is_asked()) log::survived(dropped.error());
}

asio::awaitable<void> ViewServer::pages_dropped() {
  while (dropping_ > 0) co_await dropped_.wait();
}

}  // namespace spark::live
