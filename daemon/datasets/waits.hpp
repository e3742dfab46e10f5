// What a staging waits for between two attempts: its source, a doubt that passes, a configuration that has
// changed. Each wait shows what it waits for, and ends when the task is cancelled.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>

#include "daemon/datasets/context.hpp"
#include "daemon/datasets/task.hpp"

namespace spark::datasets {

asio::awaitable<void> pause_for(TaskPtr task, Duration time);  // or until it is cancelled

std::string goes_on_when_over(const Error& why);

// Of a volume that is on its first attempt: it may be there in a moment.
asio::awaitable<void> wait_while_settling(const Context& context, TaskPtr task);

// Until it can be read. Not for one that was taken out of the configuration.
asio::awaitable<void> wait_for_source(const Context& context, TaskPtr task, std::string reason);

// Whether it passed, or the task was cancelled.
asio::awaitable<bool> doubt_passed(const Context& context, TaskPtr task);

// With the dataset as it is configured now. A volume that is away is waited for, as it would have been had
// the attempt gone on.
asio::awaitable<void> wait_to_begin_again(const Context& context, TaskPtr task);

// Its source, or what of it belongs to the dataset, is another by now.
bool is_redefined(const Context& context, const Task& task);

}  // namespace spark::datasets
