// sort(v)
module @tenon {
  func.func public @main(%arg0: tensor<8xf32>) -> (tensor<8xf32>, tensor<i1>) {
    %1 = stablehlo.bitcast_convert %arg0 : (tensor<8xf32>) -> tensor<8xi32>
    %2 = stablehlo.constant dense<2147483647> : tensor<8xi32>
    %3 = stablehlo.and %1, %2 : tensor<8xi32>
    %4 = stablehlo.constant dense<0> : tensor<8xi32>
    %5 = stablehlo.compare LT, %1, %4, SIGNED : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi1>
    %6 = stablehlo.negate %3 : tensor<8xi32>
    %7 = stablehlo.select %5, %6, %3 : tensor<8xi1>, tensor<8xi32>
    %8 = stablehlo.compare NE, %arg0, %arg0, FLOAT : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
    %9 = stablehlo.select %8, %2, %7 : tensor<8xi1>, tensor<8xi32>
    %10 = stablehlo.iota dim = 0 : tensor<8xi64>
    %11:2 = "stablehlo.sort"(%9, %10) ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>, %i: tensor<i64>, %j: tensor<i64>):
      %c = stablehlo.compare LT, %a, %b, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%c) : (tensor<i1>) -> ()
    }) {dimension = 0 : i64, is_stable = true} : (tensor<8xi32>, tensor<8xi64>) -> (tensor<8xi32>, tensor<8xi64>)
    %13 = stablehlo.constant dense<0> : tensor<8xi64>
    %14 = stablehlo.compare LT, %11#1, %13, SIGNED : (tensor<8xi64>, tensor<8xi64>) -> tensor<8xi1>
    %15 = stablehlo.constant dense<8> : tensor<8xi64>
    %16 = stablehlo.add %11#1, %15 : tensor<8xi64>
    %17 = stablehlo.select %14, %16, %11#1 : tensor<8xi1>, tensor<8xi64>
    %18 = stablehlo.compare LT, %17, %13, SIGNED : (tensor<8xi64>, tensor<8xi64>) -> tensor<8xi1>
    %19 = stablehlo.compare GE, %17, %15, SIGNED : (tensor<8xi64>, tensor<8xi64>) -> tensor<8xi1>
    %20 = stablehlo.or %18, %19 : tensor<8xi1>
    %21 = stablehlo.constant dense<false> : tensor<i1>
    %22 = "stablehlo.reduce"(%20, %21) ({
    ^bb0(%a: tensor<i1>, %b: tensor<i1>):
      %c = stablehlo.or %a, %b : tensor<i1>
      "stablehlo.return"(%c) : (tensor<i1>) -> ()
    }) {dimensions = array<i64: 0>} : (tensor<8xi1>, tensor<i1>) -> tensor<i1>
    %23 = stablehlo.reshape %17 : (tensor<8xi64>) -> tensor<8x1xi64>
    %24 = "stablehlo.gather"(%arg0, %23) {dimension_numbers = #stablehlo.gather<offset_dims = [], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1>} : (tensor<8xf32>, tensor<8x1xi64>) -> tensor<8xf32>
    "func.return"(%24, %22) : (tensor<8xf32>, tensor<i1>) -> ()
  }
}
