#include "driver/bisect.h"

#include <algorithm>

#include "driver/kernel_check.h"
#include "interp/difference.h"
#include "support/error.h"

namespace cxxinductor::driver {
namespace {

using interp::Tensor;
using Culprit = BisectReport::Culprit;
using Symptom = BisectReport::Symptom;

interp::MemRef laid_out(const Tensor& tensor) {
  interp::MemRef memref{nullptr, tensor.dtype, 0, tensor.sizes, {}};
  memref.strides.assign(tensor.sizes.size(), 1);
  for (size_t d = tensor.sizes.size(); d-- > 1;) memref.strides[d - 1] = memref.strides[d] * std::max<int64_t>(tensor.sizes[d], 1);
  interp::allocate(memref, "output");
  interp::write_tensor(memref, tensor);
  return memref;
}

// Of one output; empty where they agree within the tolerance of option check for whole results.
std::string difference_of(size_t output, const Tensor& expected, const Tensor& actual, const Options& options) {
  const auto type = [](const Tensor& tensor) { return fmt::format("{}[{}]", to_string(tensor.dtype), fmt::join(tensor.sizes, ", ")); };
  if (expected.dtype != actual.dtype || expected.sizes != actual.sizes)
    return fmt::format("output {} is {}, expected {}", output, type(actual), type(expected));
  const interp::MemRef wanted = laid_out(expected), found = laid_out(actual);
  interp::Tolerance tolerance = tolerance_for_extern(expected.dtype, interp::magnitude(wanted), options);
  if (!options.eager_numerics()) tolerance = {4 * tolerance.relative, 4 * tolerance.absolute};
  const interp::Difference difference = interp::find_difference(wanted, found, tolerance);
  if (difference.differing == 0) return "";
  return fmt::format("output {}: {}: {} of {} elements differ; the worst, at [{}]: found {}, expected {}", output, type(actual), difference.differing,
                     difference.compared, fmt::join(difference.coords, ", "), to_string(difference.actual), to_string(difference.expected));
}

std::string difference_of(const std::vector<Tensor>& expected, const std::vector<Tensor>& actual, const Options& options) {
  if (expected.size() != actual.size()) return fmt::format("{} results, expected {}", actual.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    if (std::string difference = difference_of(i, expected[i], actual[i], options); !difference.empty()) return difference;
  return "";
}

bool is_interpretable(const Form& form) { return kind_of(form) != FormKind::Calls && kind_of(form) != FormKind::Text; }

class Bisection {
 public:
  explicit Bisection(BisectRequest request) : request_(std::move(request)) {
    request_.inputs.options.freezing = false;
    if (request_.stages.empty()) request_.stages = stages_from(kind_of(request_.form), "fit-memory");
  }

  BisectReport run() {
    const Options& options = request_.inputs.options;
    if (request_.judge) {
      report_.detail = request_.judge(options);
      if (report_.detail.empty()) return std::move(report_);
      report_.symptom = Symptom::Judged;
      find_culprit({Limit::Passes, Limit::Fusions}, [&](const Options& tried) { return request_.judge(tried); });
      return std::move(report_);
    }
    find_expected();
    if (report_.detail = judge_form(request_.form); !report_.detail.empty()) {
      report_.symptom = Symptom::Differs;
      report_.stage = "import";
      return std::move(report_);
    }
    const Outcome whole = run_stages_until_bad(options, request_.stages.size(), Looks::AfterEach);
    if (whole.symptom != Symptom::None)
      bisect_stage(whole);
    else if (request_.run_kernels)
      bisect_kernels(whole);
    else
      note("kernels were not run");
    return std::move(report_);
  }

 private:
  enum class Limit : uint8_t { Passes, Fusions };
  enum class Looks : uint8_t { AfterEach, AfterLast, Never };
  using Judge = std::function<std::string(const Options&)>;

  struct Outcome {
    Symptom symptom = Symptom::None;
    size_t stage = 0;  // the first bad one, by position
    std::string detail;
    PipelineState state;  // after the last stage that ended
  };

  void say(const std::string& line) const {
    if (request_.progress) request_.progress(line);
  }
  void note(std::string line) {
    if (std::ranges::find(report_.notes, line) == report_.notes.end()) report_.notes.push_back(std::move(line));
  }

  std::vector<Tensor> interpret(const Form& form) const {
    const interp::ExternHandler externs = request_.make_externs ? request_.make_externs() : interp::ExternHandler();
    if (const auto* graph = std::get_if<graph::Graph>(&form)) return interp::run(*graph, request_.arguments, externs);
    if (const auto* program = std::get_if<loops::Program>(&form)) return interp::run(*program, request_.arguments, externs);
    return interp::run(std::get<plan::Plan>(form), request_.arguments, externs);
  }

  // Where the request does not state it.
  void find_expected() {
    if (request_.expected) return;
    PipelineState state = start(request_.inputs.options);
    try {
      for (const Stage& stage : request_.stages) {
        if (is_interpretable(state.form)) break;
        run_stages({&stage, 1}, state);
      }
      if (!is_interpretable(state.form)) return;
      request_.expected = interpret(state.form);
    } catch (const Interrupted&) {
      throw;
    } catch (const std::exception& error) {
      note(fmt::format("forms were not interpreted, since the first one cannot be: {}", error.what()));
    }
  }

  // What is wrong with the meaning of a form; empty: nothing, or it cannot be told.
  std::string judge_form(const Form& form) {
    if (!request_.expected || !is_interpretable(form)) return "";
    try {
      return difference_of(*request_.expected, interpret(form), request_.inputs.options);
    } catch (const Unsupported& error) {
      note(fmt::format("a form was not interpreted: {}", error.what()));
      return "";
    } catch (const Interrupted&) {
      throw;
    } catch (const std::exception& error) {
      return fmt::format("its interpretation fails: {}", error.what());
    }
  }

  PipelineState start(const Options& options) const {
    PipelineState state{.inputs = request_.inputs, .form = request_.form};
    state.inputs.options = options;
    leave_out_skipped(state.inputs.text_passes, state.inputs.options);
    return state;
  }

  // The first `count` stages, one by one, each verified.
  Outcome run_stages_until_bad(const Options& options, size_t count, Looks looks) {
    Outcome outcome{.state = start(options)};
    for (size_t s = 0; s < count; ++s) {
      const Stage& stage = request_.stages[s];
      outcome.stage = s;
      say(fmt::format("pass_limit={} fusion_limit={}: {}", options.pass_limit, options.fusion_limit, stage.name));
      try {
        PipelineState next = outcome.state;
        next.inputs.keep_texts = true;
        run_stages({&stage, 1}, next);
        outcome.state = std::move(next);
      } catch (const Interrupted&) {
        throw;
      } catch (const std::exception& error) {
        outcome.symptom = Symptom::Fails;
        outcome.detail = error.what();
        return outcome;
      }
      if (looks == Looks::Never || (looks == Looks::AfterLast && s + 1 != count)) continue;
      outcome.detail = judge_form(outcome.state.form);
      if (outcome.detail.empty()) continue;
      outcome.symptom = Symptom::Differs;
      return outcome;
    }
    return outcome;
  }

  void bisect_stage(const Outcome& whole) {
    report_.symptom = whole.symptom;
    report_.stage = request_.stages[whole.stage].name;
    report_.detail = whole.detail;
    const size_t count = whole.stage + 1;
    const Looks looks = whole.symptom == Symptom::Differs ? Looks::AfterLast : Looks::Never;
    const bool is_of_passes = report_.stage.ends_with("-passes");
    std::vector<Limit> limits{Limit::Passes};
    if (runs_by(count, "fuse")) limits.insert(is_of_passes ? limits.end() : limits.begin(), Limit::Fusions);
    find_culprit(limits, [&](const Options& tried) { return run_stages_until_bad(tried, count, looks).detail; });
  }

  bool runs_by(size_t count, std::string_view name) const {
    return std::ranges::find(request_.stages.first(count), name, &Stage::name) != request_.stages.first(count).end();
  }

  void bisect_kernels(const Outcome& whole) {
    const auto judge = [&](const PipelineState& planned, const Options& options) {
      say(fmt::format("pass_limit={} fusion_limit={}: run kernels", options.pass_limit, options.fusion_limit));
      return request_.run_kernels(std::get<plan::Plan>(planned.form), options);
    };
    report_.detail = judge(whole.state, request_.inputs.options);
    if (report_.detail.empty()) return;
    report_.symptom = Symptom::KernelDiffers;
    find_culprit({Limit::Fusions, Limit::Passes}, [&](const Options& tried) {
      const Outcome outcome = run_stages_until_bad(tried, request_.stages.size(), Looks::Never);
      return outcome.symptom == Symptom::None ? judge(outcome.state, tried) : outcome.detail;
    });
  }

  static int64_t& limit_of(Options& options, Limit limit) { return limit == Limit::Passes ? options.pass_limit : options.fusion_limit; }

  // The least limit with which the graph is bad; nothing where it is with 0, too, or with none that is finite.
  std::optional<int64_t> least_bad(Limit limit, const Judge& judge) {
    constexpr int64_t most = int64_t{1} << 24;
    Options options = request_.inputs.options;
    const int64_t given = limit_of(options, limit);
    const auto is_bad = [&](int64_t value) {
      limit_of(options, limit) = value;
      return !judge(options).empty();
    };
    if (given == 0 || is_bad(0)) return std::nullopt;
    int64_t good = 0, bad = given > 0 ? given : 1;
    while (given < 0 && !is_bad(bad)) {
      good = bad;
      bad *= 2;
      if (bad > most) return std::nullopt;
    }
    while (good + 1 < bad) {
      const int64_t middle = good + (bad - good) / 2;
      (is_bad(middle) ? bad : good) = middle;
    }
    return bad;
  }

  Options without_pass(const std::string& name) const {
    Options options = request_.inputs.options;
    options.skip_passes += (options.skip_passes.empty() ? "" : ",") + name;
    return options;
  }

  // Passes of users come first: limits could only name what happens before them.
  bool find_text_pass(const Judge& judge) {
    for (const std::shared_ptr<const TextPass>& pass : request_.inputs.text_passes) {
      if (!judge(without_pass(pass->name)).empty()) continue;
      const Outcome with = run_stages_until_bad(request_.inputs.options, request_.stages.size(), Looks::Never);
      Culprit culprit{.kind = Culprit::Kind::TextPass, .name = pass->name, .stage = pass->stage, .avoided_by = "skip_passes=" + pass->name};
      const auto before = with.state.texts.find(pass->stage), after = with.state.texts.find(pass->stage + "+" + pass->name);
      if (before != with.state.texts.end() && after != with.state.texts.end()) culprit.before = before->second, culprit.after = after->second;
      report_.culprit = std::move(culprit);
      return true;
    }
    return false;
  }

  void find_culprit(const std::vector<Limit>& limits, const Judge& judge) {
    if (find_text_pass(judge)) return;
    for (const Limit limit : limits) {
      const std::optional<int64_t> number = least_bad(limit, judge);
      if (!number) continue;
      report_.culprit = culprit_of(limit, *number, judge);
      return;
    }
  }

  Culprit culprit_of(Limit limit, int64_t number, const Judge& judge) {
    Options options = request_.inputs.options;
    limit_of(options, limit) = number - 1;
    const Outcome without = run_stages_until_bad(options, request_.stages.size(), Looks::Never);
    limit_of(options, limit) = number;
    const Outcome with = run_stages_until_bad(options, request_.stages.size(), Looks::Never);

    Culprit culprit{.kind = limit == Limit::Fusions ? Culprit::Kind::Fusion : Culprit::Kind::Pass, .number = number};
    for (const Stage& stage : request_.stages) {
      const auto before = without.state.texts.find(std::string(stage.name)), after = with.state.texts.find(std::string(stage.name));
      const bool fails = after == with.state.texts.end();
      if (before == without.state.texts.end() || (!fails && before->second == after->second)) continue;
      culprit.stage = stage.name;
      if (!fails) culprit.before = before->second, culprit.after = after->second;
      break;
    }
    culprit.avoided_by = fmt::format("{}={}", limit == Limit::Passes ? "pass_limit" : "fusion_limit", number - 1);
    if (limit == Limit::Fusions)
      culprit.name = without.state.fusions.refused;
    else
      name_pass(with, judge, culprit);
    return culprit;
  }

  // The pass that was the last to change something; where it throws, the one without which nothing does.
  void name_pass(const Outcome& with, const Judge& judge, Culprit& culprit) {
    std::vector<passes::PassTime> applied = with.state.graph_passes;
    applied.insert(applied.end(), with.state.loops_passes.begin(), with.state.loops_passes.end());
    const bool is_known = std::ssize(applied) == culprit.number;
    if (is_known) culprit.name = applied.back().name;
    for (const passes::PassInfo& pass : passes::pass_table()) {
      const std::string name(pass.name);
      if (is_known && name != culprit.name) continue;
      if (!judge(without_pass(name)).empty()) continue;
      culprit.name = name;
      culprit.avoided_by = "skip_passes=" + name;
      return;
    }
  }

  BisectRequest request_;
  BisectReport report_;
};

}  // namespace

BisectReport bisect(BisectRequest request) { return Bisection(std::move(request)).run(); }

}  // namespace cxxinductor::driver
