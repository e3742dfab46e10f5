-- An example for /etc/slurm/burst_buffer.lua: a job whose script has the line
--   #SPARK stage=imagenet,models
-- stays pending until all nodes below have these datasets. docs/slurm.md says when this is worth its price.
-- slurm.conf: BurstBufferType=burst_buffer/lua       burst_buffer.conf: Directive=SPARK

-- Slurm 22.05 does not say which nodes a job will get, so its data goes to all of them.
local nodes = { "spark1", "spark2", "spark3", "spark4" }
-- As SlurmUser, without a password; that user is a member of the group spark-stage on each node.
local on_node = "ssh -o BatchMode=yes %s spark-stage"
-- Keeps the copies until the job starts and its own --stage takes over.
local lease = "2h"

-- The datasets that a script asks for; nil: none. The names become words of a command, so all else is refused.
local function datasets_of(job_script)
  local datasets
  for line in io.lines(job_script) do
    local names = line:match("^#SPARK%s+stage=(%S+)%s*$")
    if names then datasets = names end
  end
  if not datasets then return nil end
  if datasets:find("[^%w%.,:/_-]") or datasets:find("^%-") or datasets:find(",%-") then
    return nil, "#SPARK stage=" .. datasets .. " has a character that no dataset's name has"
  end
  local words = datasets:gsub(",", " ")
  return words
end

-- On all nodes at once. What a node said that failed, or nil.
local function on_all_nodes(arguments)
  local running = {}
  for number, node in ipairs(nodes) do
    running[number] = io.popen(string.format(on_node, node) .. " " .. arguments .. " 2>&1 || echo FAILED")
  end
  local problem
  for number, node in ipairs(nodes) do
    local text = running[number]:read("*a")
    running[number]:close()
    local said = text:match("^(.*)FAILED%s*$")
    if said then problem = node .. ": " .. said end
  end
  return problem
end

-- These block slurmctld: no node is asked here.
function slurm_bb_job_process(job_script)
  local _, problem = datasets_of(job_script)
  if problem then return slurm.ERROR, problem end
  return slurm.SUCCESS
end

function slurm_bb_pools()
  return slurm.SUCCESS
end

function slurm_bb_paths()
  return slurm.SUCCESS
end

-- These may take long.
function slurm_bb_data_in(job_id, job_script)
  local datasets = datasets_of(job_script)
  if not datasets then return slurm.SUCCESS end
  local problem = on_all_nodes("stage --lease " .. lease .. " " .. datasets)
  if problem then return slurm.ERROR, "job " .. job_id .. ": " .. problem end
  return slurm.SUCCESS
end

function slurm_bb_test_data_in()
  return slurm.SUCCESS
end

function slurm_bb_setup()
  return slurm.SUCCESS
end

function slurm_bb_real_size()
  return slurm.SUCCESS
end

function slurm_bb_pre_run()
  return slurm.SUCCESS
end

function slurm_bb_post_run()
  return slurm.SUCCESS
end

function slurm_bb_data_out()
  return slurm.SUCCESS
end

function slurm_bb_test_data_out()
  return slurm.SUCCESS
end

function slurm_bb_job_teardown()
  return slurm.SUCCESS
end

function slurm_bb_get_status()
  return slurm.SUCCESS, "#SPARK stage=DATASET,DATASET...: what each node stages is shown by: spark-stage status\n"
end
