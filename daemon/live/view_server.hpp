// Runs the processes of live views: the one that answers the kernel for a view is replaced when it ends.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "base/file.hpp"
#include "base/json.hpp"
#include "daemon/event.hpp"
#include "daemon/systemd.hpp"
#include "daemon/workers/runner.hpp"

namespace spark::live {

namespace asio = boost::asio;

// The service manager keeps descriptors through a restart of the daemon. Null: none does.
struct KeptDescriptors {
  Notifier* manager = nullptr;
  std::shared_ptr<std::map<std::string, UniqueFd>> earlier{};  // by name: what this daemon was started with
};

struct ViewTimings {
  Duration retry{100};  // after a process has ended; then doubled
  Duration longest_retry{5000};
  Duration without{30'000};  // without a process, until the connection ends
  Duration lived{1000};      // a process that answered for a shorter time counts as none
};

inline const std::string kDescriptorName = "live-";  // followed by the view's number

struct View {
  std::uint64_t number = 0;
  std::string dataset{};
  std::string owner{};     // of whose share it is: "user 7", "jobs of alice"
  json::object request{};  // of its workers: a reload may change the cache's settings
  UniqueFd device{};
  std::string folder{};                                        // once it answers
  std::uint64_t generation{};                                  // once it is published
  std::string trouble{};                                       // the first one
  unsigned failed_files = 0;                                   // 0: the trouble is that of all of it
  workers::Cancellation cancellation{};                        // of its process
  workers::Cancellation dropping{};                            // of the process that drops its pages
  bool has_begun = false, is_ending = false, is_over = false;  // over: it has no process any more
  bool can_resend = false, is_kept = false;                    // its descriptor is
  bool is_of_another_set = false;                              // its source has changed

  bool has_failed() const { return !trouble.empty() && failed_files == 0; }
  std::string descriptor_name() const { return kDescriptorName + std::to_string(number); }
};
using ViewPtr = std::shared_ptr<View>;

std::string subject_of(const std::string& dataset);  // for people

class ViewServer {
 public:
  // `on_change`: a view answers, or something of it has failed.
  ViewServer(asio::any_io_executor executor, workers::Runner& runner, const Clock& clock,
             std::function<void()> on_change, Notifier* manager, ViewTimings timings)
      : executor_(std::move(executor)),
        runner_(runner),
        clock_(clock),
        on_change_(std::move(on_change)),
        manager_(manager),
        timings_(timings),
        dropped_(executor_) {}

  // Until no program uses the view, or no process can answer for it.
  asio::awaitable<void> serve(ViewPtr view);
  // Nothing more arrives in it.
  void fail(View& view, const std::string& why) const;
  void note_failed_file(View& view, const std::string& why) const;
  // Ends the connection with its last holder: all readers get an error. For a view whose map can't say so.
  void cut(View& view) const;
  // One short request to a worker about the view.
  asio::awaitable<Result<>> ask(ViewPtr view, std::string verb, json::object more);
  // Beside the view's process: the kernel waits for a page that is being read, and only that process ends the
  // wait.
  asio::awaitable<void> drop_pages(ViewPtr view);
  asio::awaitable<void> pages_dropped();  // no process drops pages

 private:
  void note(View& view, const json::object& progress) const;

  asio::any_io_executor executor_;
  workers::Runner& runner_;
  const Clock& clock_;
  std::function<void()> on_change_;
  Notifier* manager_;
  ViewTimings timings_;
  unsigned dropping_ = 0;  // processes
  Event dropped_;
};

}  // namespace spark::live
