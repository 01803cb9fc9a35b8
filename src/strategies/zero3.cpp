// zero3: whole tensors dealt to ranks by bytes; owners broadcast them before use and get their gradients
// reduced to them.
#include "laws/sharded_cost.h"
#include "strategies/sharded.h"

namespace shardmark {
namespace {

std::unique_ptr<Strategy> make(const StrategyContext& context) {
  context.model.regroup(
      laws::with_persistent(context.model.table(), context.options.at("persistence").get<int64_t>()));
  return make_sharded(context,
                      {.layout = laws::whole_tensor_layout(context.model.table(), context.comm.size(),
                                                           laws::evenness(context.options)),
                       .group = context.comm.size(),
                       .hold = {},
                       .prefetch = context.options.at("prefetch").get<int64_t>(),
                       .offload = laws::offloads(context.options)});
}

const Registration<StrategyEntry> registered{"zero3", {"whole tensors dealt to ranks", make}};

}  // namespace
}  // namespace shardmark
