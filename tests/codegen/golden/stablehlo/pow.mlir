// v ** 3, v ** 0.5, v ** v
module @tenon {
  func.func public @main(%arg0: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
    %1 = stablehlo.constant dense<0x40400000> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<8xf32>
    %3 = stablehlo.multiply %arg0, %arg0 : tensor<8xf32>
    %4 = stablehlo.multiply %3, %arg0 : tensor<8xf32>
    %5 = stablehlo.constant dense<0x3F000000> : tensor<f32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [] : (tensor<f32>) -> tensor<8xf32>
    %7 = stablehlo.convert %arg0 : (tensor<8xf32>) -> tensor<8xf64>
    %8 = stablehlo.convert %6 : (tensor<8xf32>) -> tensor<8xf64>
    %9 = stablehlo.power %7, %8 : tensor<8xf64>
    %10 = stablehlo.convert %9 : (tensor<8xf64>) -> tensor<8xf32>
    %11 = stablehlo.power %7, %7 : tensor<8xf64>
    %12 = stablehlo.convert %11 : (tensor<8xf64>) -> tensor<8xf32>
    "func.return"(%4, %10, %12) : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> ()
  }
}
