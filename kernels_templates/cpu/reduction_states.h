// Where a kernel keeps the states of a reduction (reduce.h) while its loops run: those of a row, or of a strip of columns.
// Included by value after reduce.h.
namespace cxxi {

// Rows: Sets independent states of W lanes hide the latency of the updates (the last one takes the vectors that do not make a
// set); `narrow` takes the tail.
template <template <class, int> class R, class D, int W, int Sets>
struct row_state {
  R<D, W> wide[Sets];
  R<D, 1> narrow;
  template <int L, int Set>
  auto& at() {
    if constexpr (L == 1) {
      return narrow;
    } else {
      return wide[Set];
    }
  }
  R<D, 1> joined() {
    if constexpr (W > 1) {
      for (int i = 1; i < Sets; ++i) wide[0].merge(wide[i]);
      narrow.merge(wide[0].across());
    }
    return narrow;
  }
};
// Columns: one state a column of the strip; group g of W columns, or column g of the tail.
template <template <class, int> class R, class D, int W, int Columns>
struct column_tile_state {
  static constexpr int tail = W == 1 ? Columns : W;
  R<D, W> wide[Columns / W];
  R<D, 1> narrow[tail];
  template <int L>
  auto& at(index g) {
    if constexpr (L == 1) {
      return narrow[g];
    } else {
      return wide[g];
    }
  }
};

// ---- totals of blocks ----------------------------------------------------------------------------------------------
// A state that takes many elements is put aside every few dozen updates, and begins anew: of a long chain of additions, each
// one would lose more than the whole sum may. What was put aside is joined with nothing lost.
template <class State>
struct total_of {
  State joined;
  void add(const State& block) { joined.merge(block); }
  State state() const { return joined; }
};

// `lost` is what rounding takes from the sum. An infinite sum loses what is no number, and stands as it is.
template <class T, int L>
struct exact_sum {
  vec<T, L> sum{}, lost{};
  void add(vec<T, L> block) {
    const vec<T, L> joined = sum + block, taken = joined - sum;
    lost += (sum - (joined - taken)) + (block - taken);
    sum = joined;
  }
  vec<T, L> total() const {
    const vec<T, L> whole = sum + lost;
    return whole == whole ? whole : sum;
  }
};
template <class D, int L>
struct total_of<sum<D, L>> {
  exact_sum<typename sum<D, L>::T, L> value;
  void add(const sum<D, L>& block) { value.add(block.value); }
  sum<D, L> state() const { return {value.total()}; }
};
template <class D, int L>
struct total_of<welford<D, L>> {
  using T = typename welford<D, L>::T;
  exact_sum<T, L> mean, m2;
  long long count = 0;
  void add(const welford<D, L>& block) {
    if (block.count == 0) return;
    const T share = static_cast<T>(block.count) / static_cast<T>(count + block.count);
    const vec<T, L> delta = (block.mean - mean.sum) - mean.lost;
    mean.add(delta * share);
    m2.add(block.m2 + delta * (delta * (static_cast<T>(count) * share)));
    count += block.count;
  }
  welford<D, L> state() const { return {mean.total(), m2.total(), count}; }
};
// ---- states that are put aside ---------------------------------------------------------------------------------------
template <template <class, int> class R, class D, int W, int Sets>
struct long_row_state : row_state<R, D, W, Sets> {
  using States = row_state<R, D, W, Sets>;
  total_of<R<D, 1>> total;
  bool in_blocks = false;
  void put_aside() {
    total.add(States::joined());
    static_cast<States&>(*this) = States();
    in_blocks = true;
  }
  R<D, 1> joined() {
    if (!in_blocks) return States::joined();
    put_aside();
    return total.state();
  }
};
template <template <class, int> class R, class D, int W, int Columns>
struct long_column_tile_state : column_tile_state<R, D, W, Columns> {
  using States = column_tile_state<R, D, W, Columns>;
  using States::narrow, States::tail, States::wide;
  total_of<R<D, W>> wide_totals[Columns / W];
  total_of<R<D, 1>> narrow_totals[tail];
  bool in_blocks = false;
  // Of a strip of so many columns.
  void put_aside(index columns) {
    const index groups = W == 1 ? 0 : columns / W;
    for (index g = 0; g < groups; ++g) {
      wide_totals[g].add(wide[g]);
      wide[g] = {};
    }
    for (index g = 0; g < columns - groups * W; ++g) {
      narrow_totals[g].add(narrow[g]);
      narrow[g] = {};
    }
    in_blocks = true;
  }
  // After the last element: the states of all of them.
  void take_all(index columns) {
    if (!in_blocks) return;
    put_aside(columns);
    const index groups = W == 1 ? 0 : columns / W;
    for (index g = 0; g < groups; ++g) wide[g] = wide_totals[g].state();
    for (index g = 0; g < columns - groups * W; ++g) narrow[g] = narrow_totals[g].state();
  }
};

}  // namespace cxxi
