// x[i]
module @tenon {
  func.func public @main(%arg0: tensor<4x8xf32>, %arg1: tensor<3xi64>) -> (tensor<3x8xf32>, tensor<i1>) {
    %2 = stablehlo.constant dense<0> : tensor<3xi64>
    %3 = stablehlo.compare LT, %arg1, %2, SIGNED : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi1>
    %4 = stablehlo.constant dense<4> : tensor<3xi64>
    %5 = stablehlo.add %arg1, %4 : tensor<3xi64>
    %6 = stablehlo.select %3, %5, %arg1 : tensor<3xi1>, tensor<3xi64>
    %7 = stablehlo.compare LT, %6, %2, SIGNED : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi1>
    %8 = stablehlo.compare GE, %6, %4, SIGNED : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi1>
    %9 = stablehlo.or %7, %8 : tensor<3xi1>
    %10 = stablehlo.constant dense<false> : tensor<i1>
    %11 = "stablehlo.reduce"(%9, %10) ({
    ^bb0(%a: tensor<i1>, %b: tensor<i1>):
      %c = stablehlo.or %a, %b : tensor<i1>
      "stablehlo.return"(%c) : (tensor<i1>) -> ()
    }) {dimensions = array<i64: 0>} : (tensor<3xi1>, tensor<i1>) -> tensor<i1>
    %12 = "stablehlo.gather"(%arg0, %6) {dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 8>} : (tensor<4x8xf32>, tensor<3xi64>) -> tensor<3x8xf32>
    "func.return"(%12, %11) : (tensor<3x8xf32>, tensor<i1>) -> ()
  }
}
