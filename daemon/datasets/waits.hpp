// The waits of a staging between two attempts: for its source, for the end of a doubt, for a changed
// configuration. Each shows its reason, and ends when the task is cancelled.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>

#include "daemon/datasets/context.hpp"
#include "daemon/datasets/task.hpp"

namespace spark::datasets {

asio::awaitable<void> pause_for(TaskPtr task, Duration time);  // or until it is cancelled

std::string goes_on_when_over(const Error& why);

// For a volume on its first attempt: it may be ready in a moment.
asio::awaitable<void> wait_while_settling(const Context& context, TaskPtr task);

// Waits until the source can be read, or until `end`. Does not wait for a volume that was removed from the
// configuration.
asio::awaitable<void> wait_for_source(const Context& context, TaskPtr task, std::string reason,
                                      SteadyTime end = SteadyTime::max());

// For a task that has not begun, because of `why`: waits until another attempt is worthwhile. Only those of
// its requests wait that have the patience for it.
asio::awaitable<void> wait_to_begin(const Context& context, TaskPtr task, Error why);

// Whether the doubt ended, or the task was cancelled.
asio::awaitable<bool> doubt_passed(const Context& context, TaskPtr task);

// Takes the dataset's current configuration. If its volume is away it waits for the volume, just as the
// attempt would have done.
asio::awaitable<void> wait_to_begin_again(const Context& context, TaskPtr task);

// The dataset's source, or the part of it to stage, has changed in the configuration.
bool is_redefined(const Context& context, const Task& task);

}  // namespace spark::datasets
